"""Decoders whose products read integers through DequantizeLinear."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCK = 16


def qdq(data: bytes, bits: int, *, has_zeros: bool = False) -> bytes:
    """Replace matrices of a decoder by int8 with a scale by column, or by int4 in blocks of 16.

    Args:
        data: The decoder, of opset 21 or later for int4.
        bits: 8 or 4.
        has_zeros: Whether there are zero points, which differ.
    """
    model = onnx.load_from_string(data)
    random = np.random.default_rng(5)
    graph = model.graph
    known = {tensor.name: tensor for tensor in graph.initializer}
    nodes, tensors = [], []
    for node in graph.node:
        tensor = known.get(node.input[1]) if node.op_type == "MatMul" else None
        if tensor is not None and len(tensor.dims) == 2:
            depth, columns = tensor.dims
            blocks = [columns] if bits == 8 else [depth // BLOCK, columns]
            kind = helper.tensor_dtype_to_np_dtype(
                TensorProto.INT8 if bits == 8 else TensorProto.INT4
            )
            low, high = -(1 << (bits - 1)), 1 << (bits - 1)
            drawn = [
                random.integers(low, high, [depth, columns]).astype(kind),
                random.uniform(0.5, 1.5, blocks).astype(np.float32) / high / np.float32(depth**0.5),
                random.integers(low // 4, high // 4, blocks).astype(kind),
            ]
            names = [f"{tensor.name}.{part}" for part in ("q", "s", "z")][: 3 if has_zeros else 2]
            tensors += [
                numpy_helper.from_array(each, name)
                for each, name in zip(drawn, names, strict=False)
            ]
            axis = {"axis": 1} if bits == 8 else {"axis": 0, "block_size": BLOCK}
            real = f"{node.name}.real"
            nodes.append(
                helper.make_node("DequantizeLinear", names, [real], f"{real}.node", **axis)
            )
            node.input[1] = real
        nodes.append(node)
    read = {name for node in nodes for name in node.input}
    tensors += [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(tensors)
    return model.SerializeToString()
