"""Estimates the arithmetic operations of each node from shapes: the price of running it again."""

from collections.abc import Callable, Mapping
from math import prod

from tightship.graph import Graph, Layer, Node
from tightship.graph.operators import Category, row_of
from tightship.planner.recompute import NEVER


def operations_of(graph: Graph, node: Node) -> int:
    """Count multiplications, additions and other arithmetic of a node; `NEVER` if it must run once.

    A matrix product has 2 for each term. A view has none. Nodes with sizes that depend on data,
    with bodies of control flow, or with the caller's layers have unknown counts and run once.
    """
    values = [graph.value(name) for name in (*node.reads, *node.writes)]
    row = row_of(node)
    if (
        (row.is_random and (node.operator != "Dropout" or len(node.inputs) > 2))
        or row.category is Category.UPDATING
        or node.subgraphs
        or any(isinstance(value, Layer) for value in node.attributes.values())
        or not all(value.is_static for value in values if value.name not in graph.constants)
    ):
        return NEVER
    if row.category in (Category.RESHAPING, Category.CUTTING):
        return 0
    if product := _PRODUCTS.get(node.operator):
        return 2 * product(graph, node)
    if row.operations is not None:
        return row.operations * _elements(graph, node.inputs[0])
    written = sum(_elements(graph, name) for name in node.writes)
    if (row.category is Category.ELEMENTWISE and not node.domain) or node.operator == "Transpose":
        return written
    read = sum(_elements(graph, name) for name in node.reads)
    length = node.attributes.get("length")
    # A tile of this gradient covers some rows, and so reads that share of the gathered elements.
    if node.operator == "GatherGrad" and isinstance(length, int):
        read = read * _shape(graph, node.outputs[0])[0] // length
    return max(written, read)


def _elements(graph: Graph, name: str) -> int:
    return prod(_shape(graph, name))


def _shape(graph: Graph, name: str) -> tuple[int, ...]:
    constant = graph.constant(name)
    return constant.shape if constant is not None else graph.value(name).static_shape


def _matrices(graph: Graph, node: Node) -> int:
    depth = _shape(graph, node.inputs[0])[-2 if node.attributes.get("transA") else -1]
    return depth * _elements(graph, node.outputs[0])


def _convolution(graph: Graph, node: Node) -> int:
    """Count terms of a convolution: each output is a sum over the weights of its channel."""
    return _elements(graph, node.outputs[0]) * prod(_shape(graph, node.inputs[1])[1:])


def _spread(graph: Graph, node: Node) -> int:
    """Count terms of a transposed convolution: each input meets the weights of its channel."""
    return _elements(graph, node.inputs[0]) * prod(_shape(graph, node.inputs[1])[1:])


def _weights_gradient(graph: Graph, node: Node) -> int:
    """Count terms of the weights' gradient: each element of `dy` meets one filter's window."""
    shape = node.attributes["shape"]
    assert isinstance(shape, tuple)
    return _elements(graph, node.inputs[0]) * prod(int(length) for length in shape[1:])


_PRODUCTS: Mapping[str, Callable[[Graph, Node], int]] = {
    "Conv": _convolution,
    "ConvGradData": _spread,
    "ConvGradWeights": _weights_gradient,
    "ConvTranspose": _spread,
    "Gemm": _matrices,
    "MatMul": _matrices,
    "TransposedMatMul": _matrices,
}
