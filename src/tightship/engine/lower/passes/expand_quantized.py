"""Rewrites QLinearConv and QLinearMatMul to QDQ form, so that one set of kernels serves both."""

from dataclasses import replace

import numpy as np

from tightship.engine.lower.passes.affine import flat
from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import Constant, Derived, DType, Graph, Node, Value, element_count
from tightship.graph.constant import Array

OPSET = 13
ONNX_FLOAT = 1


def expand_quantized(graph: Graph) -> Graph:
    """Replace both by DequantizeLinear, the operator on real numbers, and QuantizeLinear."""
    nodes: list[Node] = []
    constants: dict[str, Constant] = {}
    values: dict[str, Value] = {}
    for node in graph.nodes:
        expanded = None
        if not node.domain and node.operator in ("QLinearConv", "QLinearMatMul"):
            expanded = _expanded(graph, node, constants, values)
        nodes.extend(expanded or [node])
    return rebuilt(graph, nodes, constants=constants, values=values)


def _expanded(
    graph: Graph, node: Node, constants: dict[str, Constant], values: dict[str, Value]
) -> list[Node] | None:
    left, right, output = node.inputs[0:3], node.inputs[3:6], node.outputs[0]
    plain = node.operator.removeprefix("QLinear")
    bias = node.inputs[8] if len(node.inputs) > 8 else ""
    types = {graph.value(name).dtype for name in (left[1], right[1], node.inputs[6])}
    if types != {DType.FLOAT32} or not (
        graph.value(left[1]).is_static and graph.value(right[1]).is_static
    ):
        return None
    names = [f"{node.name}.{part}" for part in ("left", "right", "real")]
    for name, source in zip(names, (left[0], right[0], output), strict=True):
        values[name] = Value(name, DType.FLOAT32, graph.value(source).shape)
    inputs = tuple(names[:2])
    added: list[Node] = []
    if bias:
        inputs = (*inputs, f"{node.name}.bias")
        scales = [graph.constants.get(part[1]) for part in (left, right)]
        if None in scales or bias not in graph.constants:
            added = _scaled_bias(node, bias, (left[1], right[1]), values, graph)
        else:
            constants[f"{node.name}.bias"] = _real_bias(graph.constants[bias], scales)
    axis = 0 if plain == "Conv" else max(len(graph.value(right[0]).shape or ()) - 1, 0)
    quantize = (names[2], *node.inputs[6:8])
    return [
        _dequantize(names[0], left, 0),
        _dequantize(names[1], right, axis),
        *added,
        replace(node, operator=plain, inputs=inputs, outputs=(names[2],), version=OPSET),
        Node(f"{node.name}.quantize", "QuantizeLinear", quantize, (output,), version=OPSET),
    ]


def _scaled_bias(
    node: Node, bias: str, scales: tuple[str, str], values: dict[str, Value], graph: Graph
) -> list[Node]:
    """Make the nodes that convert an int32 bias to real numbers by computed scales."""
    shape = graph.value(bias).shape
    name, step = f"{node.name}.bias", f"{node.name}.bias.step"
    whole = f"{node.name}.bias.whole"
    shapes = [graph.value(scale).static_shape for scale in scales]
    values[step] = Value(
        step, DType.FLOAT32, max(shapes, key=lambda each: (element_count(each), len(each)))
    )
    values[whole] = Value(whole, DType.FLOAT32, shape)
    values[name] = Value(name, DType.FLOAT32, shape)
    return [
        Node(step, "Mul", scales, (step,), version=OPSET),
        Node(whole, "Cast", (bias,), (whole,), {"to": ONNX_FLOAT}, version=OPSET),
        Node(name, "Mul", (whole, step), (name,), version=OPSET),
    ]


def _dequantize(name: str, source: tuple[str, ...], axis: int) -> Node:
    attributes = {"axis": axis}
    return Node(name, "DequantizeLinear", source, (name,), attributes=attributes, version=OPSET)


def _real_bias(bias: Constant, scales: list[Constant | None]) -> Constant:
    left, right = scales
    assert left is not None
    assert right is not None

    def compute() -> Array:
        steps = flat(left) * flat(right)
        return np.asarray(flat(bias) * steps, np.float32)

    return Derived(DType.FLOAT32, bias.shape, compute, (bias, left, right), "real bias")
