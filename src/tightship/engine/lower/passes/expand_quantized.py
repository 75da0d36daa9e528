"""Rewrites QLinearConv and QLinearMatMul to QDQ form, so that one set of kernels serves both."""

from dataclasses import replace

import numpy as np

from tightship.engine.lower.passes.affine import flat
from tightship.engine.lower.passes.rewrite import OPSET, GraphWriter
from tightship.graph import Constant, Derived, DType, Graph, Node, element_count
from tightship.graph.constant import Array

ONNX_FLOAT = 1


def expand_quantized(graph: Graph) -> Graph:
    """Replace both by DequantizeLinear, the operator on real numbers, and QuantizeLinear."""
    writer = GraphWriter(graph)
    for node in graph.nodes:
        if not node.domain and node.operator in ("QLinearConv", "QLinearMatMul"):
            _expand(writer, node)
        else:
            writer.nodes.append(node)
    return writer.written()


def _expand(writer: GraphWriter, node: Node) -> None:
    """Write the nodes of an operator; the operator itself if a scale is not a float32."""
    graph, constants = writer.graph, writer.graph.constants
    left, right, output = node.inputs[0:3], node.inputs[3:6], node.outputs[0]
    types = {graph.value(name).dtype for name in (left[1], right[1], node.inputs[6])}
    if types != {DType.FLOAT32} or not (
        graph.value(left[1]).is_static and graph.value(right[1]).is_static
    ):
        writer.nodes.append(node)
        return
    plain = node.operator.removeprefix("QLinear")
    axis = 0 if plain == "Conv" else max(len(graph.value(right[0]).shape or ()) - 1, 0)
    inputs: tuple[str, ...] = ()
    for part, source, along in (("left", left, 0), ("right", right, axis)):
        name = writer.declare(f"{node.name}.{part}", graph.value(source[0]).shape)
        inputs += (writer.add("DequantizeLinear", source, name, {"axis": along}),)
    bias = node.inputs[8] if len(node.inputs) > 8 else ""
    if bias:
        name = f"{node.name}.bias"
        scales = [constants.get(part[1]) for part in (left, right)]
        if None in scales or bias not in constants:
            _scale_bias(writer, name, bias, (left[1], right[1]))
        else:
            writer.constants[name] = _real_bias(constants[bias], scales)
        inputs += (name,)
    real = writer.declare(f"{node.name}.real", graph.value(output).shape)
    writer.nodes.append(
        replace(node, operator=plain, inputs=inputs, outputs=(real,), version=OPSET)
    )
    quantize = (real, *node.inputs[6:8])
    writer.add("QuantizeLinear", quantize, output, name=f"{node.name}.quantize")


def _scale_bias(writer: GraphWriter, name: str, bias: str, scales: tuple[str, str]) -> None:
    """Convert an int32 bias to real numbers by computed scales."""
    shape = writer.graph.value(bias).shape
    steps = max(map(writer.shape, scales), key=lambda each: (element_count(each), len(each)))
    step = writer.add("Mul", scales, writer.declare(f"{name}.step", steps))
    whole = writer.declare(f"{name}.whole", shape)
    writer.add("Cast", (bias,), whole, {"to": ONNX_FLOAT})
    writer.add("Mul", (whole, step), writer.declare(name, shape))


def _real_bias(bias: Constant, scales: list[Constant | None]) -> Constant:
    left, right = scales
    assert left is not None
    assert right is not None

    def compute() -> Array:
        steps = flat(left) * flat(right)
        return np.asarray(flat(bias) * steps, np.float32)

    return Derived(DType.FLOAT32, bias.shape, compute, (bias, left, right), "real bias")
