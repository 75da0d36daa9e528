"""Rewrites products of a column by a computed row as Mul, such as rotary frequencies by positions.

One by a constant row stays a product, which takes a bias and an activation. Attention has been
recognized before: with one key, its second product is of this form.
"""

from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import DType, Graph, Node


def expand_outer(graph: Graph) -> Graph:
    """Replace every MatMul each element of whose result is one product."""
    nodes = [_times(node) if _is_outer(graph, node) else node for node in graph.nodes]
    return graph if nodes == list(graph.nodes) else rebuilt(graph, nodes)


def _is_outer(graph: Graph, node: Node) -> bool:
    if (node.domain, node.operator) != ("", "MatMul") or node.fused:
        return False
    left, right = (graph.value(name) for name in node.inputs)
    if node.inputs[1] in graph.constants or not (left.is_static and right.is_static):
        return False
    return (
        left.dtype is DType.FLOAT32
        and min(len(left.static_shape), len(right.static_shape)) >= 2
        and left.static_shape[-1] == 1
    )


def _times(outer: Node) -> Node:
    return Node(outer.name, "Mul", outer.inputs, outer.outputs, version=14)
