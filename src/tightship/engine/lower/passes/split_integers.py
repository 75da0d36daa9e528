"""Rewrites ConvInteger to sums of convolutions with int8 weights without a zero point.

Weights less their zero point have up to nine bits: they are a sum of two or three int8 tensors, and
the convolution is the sum of the convolutions with each.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tightship.engine.lower.passes.dequantized import NARROW
from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import Constant, Derived, DType, Graph, Node, Value
from tightship.graph.constant import Array

LEAST, MOST = -128, 127
OPSET = 14


def split_integers(graph: Graph) -> Graph:
    """Replace every ConvInteger whose constant weights are uint8 or have a zero point."""
    constants: dict[str, Constant] = {}
    values: dict[str, Value] = {}
    nodes = [each for node in graph.nodes for each in _split(graph, node, constants, values)]
    return rebuilt(graph, nodes, constants=constants, values=values)


def _split(
    graph: Graph, node: Node, constants: dict[str, Constant], values: dict[str, Value]
) -> list[Node]:
    if node.operator != "ConvInteger" or node.domain:
        return [node]
    weights, name = graph.constants.get(node.inputs[1]), (*node.inputs, "", "")[3]
    zero = graph.constants.get(name)
    if weights is None or weights.dtype not in NARROW or bool(name) != (zero is not None):
        return [node]
    if weights.dtype is DType.INT8 and zero is None:
        return [node]
    nodes: list[Node] = []
    for index, term in enumerate(_terms(weights, zero)):
        part = f"{node.name}.{index}"
        constants[f"{part}.weights"] = term
        inputs = (node.inputs[0], f"{part}.weights", *node.inputs[2:3])
        nodes.append(replace(node, name=part, inputs=inputs, outputs=(part,)))
        if index:
            summed = (nodes[-2].outputs[0], part)
            nodes.append(Node(f"{part}.sum", "Add", summed, (f"{part}.sum",), version=OPSET))
    values.update({n.name: replace(graph.value(node.outputs[0]), name=n.name) for n in nodes})
    return [*nodes[:-1], replace(nodes[-1], outputs=node.outputs)]


def _terms(weights: Constant, zero: Constant | None) -> list[Constant]:
    """Return int8 weights whose sum is the weights less their zero points."""
    zeros = np.zeros((1,), np.int16) if zero is None else zero.array().astype(np.int16).reshape(-1)
    least, most = (0, 255) if weights.dtype is DType.UINT8 else (LEAST, MOST)
    beyond = max(most - int(zeros.min()) - MOST, LEAST - least + int(zeros.max()))
    count = 1 + -(-max(beyond, 0) // MOST)
    operands = (weights,) if zero is None else (weights, zero)
    aside = zeros.reshape(-1, *[1] * (len(weights.shape) - 1))
    return [
        Derived(DType.INT8, weights.shape, _term(weights, aside, index), operands, ("term", index))
        for index in range(count)
    ]


def _term(
    weights: Constant, zeros: NDArray[np.int16], index: int
) -> Callable[[], NDArray[np.generic]]:
    def compute() -> Array:
        rest: NDArray[np.int16] = np.subtract(weights.array(), zeros, dtype=np.int16)
        for _ in range(index):
            rest -= np.clip(rest, LEAST, MOST)
        return np.clip(rest, LEAST, MOST).astype(np.int8)

    return compute
