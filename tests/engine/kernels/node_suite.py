"""The single-node models of ONNX's backend suite as nodes and arrays of ours."""

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, numpy_helper

from tests.onnx_node_suite import node_tests
from tightship.engine.kernels import Array, Kernel, numpy_kernel
from tightship.graph import Constant, DType, Graph, Inline, Node, Value


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    node: Node
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]

    @property
    def is_numeric(self) -> bool:
        return all(
            operand is None or (isinstance(operand, np.ndarray) and operand.dtype.kind not in "OUS")
            for operand in (*self.inputs, *self.outputs)
        )


@functools.cache
def cases() -> tuple[Case, ...]:
    return tuple(case for test in node_tests() if (case := _case(test)) is not None)


def _case(test: Any) -> Case | None:
    model = test.model or onnx.load(os.path.join(test.model_dir, "model.onnx"))
    if len(model.graph.node) != 1 or model.graph.initializer:
        return None
    inputs, outputs = test.data_sets[0] if test.data_sets else _stored(test.model_dir, model)
    proto = model.graph.node[0]
    known = dict(zip((i.name for i in model.graph.input), inputs, strict=False))
    known |= dict(zip((o.name for o in model.graph.output), outputs, strict=False))
    versions = {opset.domain: opset.version for opset in model.opset_import}
    return Case(
        test.name,
        from_proto(proto, versions),
        tuple(_as_array(known.get(name)) for name in proto.input),
        tuple(_as_array(known.get(name)) for name in proto.output),
    )


def _as_array(operand: Any) -> Any:
    if isinstance(operand, onnx.TensorProto):
        return numpy_helper.to_array(operand)
    return np.asarray(operand) if isinstance(operand, np.generic) else operand


def _stored(folder: str, model: onnx.ModelProto) -> tuple[list[Any], list[Any]]:
    def read(kind: str, infos: Any) -> list[Any]:
        results = []
        for index, info in enumerate(infos):
            path = os.path.join(folder, "test_data_set_0", f"{kind}_{index}.pb")
            with open(path, "rb") as file:
                results.append(_operand(file.read(), info.type))
        return results

    return read("input", model.graph.input), read("output", model.graph.output)


def _operand(data: bytes, kind: onnx.TypeProto) -> Any:
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def from_proto(proto: onnx.NodeProto, versions: Mapping[str, int]) -> Node:
    attributes = {a.name: _attribute(a, versions) for a in proto.attribute}
    return Node(
        proto.name or proto.op_type,
        proto.op_type,
        tuple(proto.input),
        tuple(proto.output),
        {name: value for name, value in attributes.items() if value is not None},
        proto.domain,
        versions.get(proto.domain, 1),
    )


def _attribute(attribute: AttributeProto, versions: Mapping[str, int]) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.type == AttributeProto.TENSOR:
        return Inline(numpy_helper.to_array(value))
    if attribute.type == AttributeProto.GRAPH:
        return _graph(value, versions)
    if attribute.type == AttributeProto.STRINGS:
        return tuple(text.decode() for text in value)
    if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS):
        return tuple(value)
    return value if isinstance(value, (int, float, bytes)) else None


def _graph(proto: onnx.GraphProto, versions: Mapping[str, int]) -> Graph:
    inputs = tuple(i.name for i in proto.input)
    constants = {t.name: Inline(numpy_helper.to_array(t)) for t in proto.initializer}
    nodes = tuple(from_proto(node, versions) for node in proto.node)
    defined = {*inputs, *constants}
    captures: dict[str, None] = {}
    for node in nodes:
        captures |= dict.fromkeys(name for name in node.reads if name not in defined)
        defined |= set(node.writes)
    outputs = tuple(o.name for o in proto.output)
    captures |= dict.fromkeys(name for name in outputs if name not in defined)
    return Graph(proto.name, inputs, outputs, {}, nodes, constants, captures=tuple(captures))


def values_of(names: Sequence[str], arrays: Sequence[Array | None]) -> list[Value | None]:
    return [
        None if array is None else Value(name, DType.of(array.dtype), array.shape)
        for name, array in zip(names, arrays, strict=True)
    ]


def known(node: Node, arrays: Sequence[Array | None]) -> dict[str, Constant]:
    pairs = zip(node.inputs, arrays, strict=True)
    return {name: Inline(array) for name, array in pairs if array is not None}


def kernel_for(
    node: Node, inputs: Sequence[Array | None], outputs: Sequence[Array | None]
) -> Kernel | None:
    """The kernel, with every input known; outputs give dtypes and shapes."""
    return numpy_kernel(
        node,
        values_of(node.inputs, inputs),
        values_of(node.outputs, outputs),
        known(node, inputs),
    )


def scratch_for(kernel: Kernel) -> Array | None:
    """Scratch at a 64-byte boundary, full of bytes that no kernel may rely on."""
    if not kernel.scratch_bytes:
        return None
    raw = np.full(kernel.scratch_bytes + 64, 0xCB, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + kernel.scratch_bytes]


def poisoned(like: Array) -> Array:
    """An array of the same type whose bytes a kernel must overwrite."""
    result = np.empty(like.shape, like.dtype)
    result.reshape(-1).view(np.uint8).fill(1 if like.dtype == np.bool_ else 0x5B)
    return result


def run(
    kernel: Kernel, inputs: Sequence[Array | None], like: Sequence[Array | None]
) -> list[Array | None]:
    outputs = [None if array is None else poisoned(array) for array in like]
    dense = [None if x is None else np.array(x, order="C") for x in inputs]
    kernel.run(dense, outputs, scratch_for(kernel))
    return outputs


def assert_close(actual: Sequence[Any], expected: Sequence[Any]) -> None:
    for result, wanted in zip(actual, expected, strict=True):
        if wanted is None:
            continue
        assert result.dtype == wanted.dtype
        assert result.shape == wanted.shape
        wide = np.float64 if wanted.dtype.kind not in "iubc" else wanted.dtype
        np.testing.assert_allclose(
            result.astype(wide), wanted.astype(wide), rtol=1e-3, atol=1e-5, equal_nan=True
        )
