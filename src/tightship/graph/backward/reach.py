"""Finds values of a graph that depend on others with a gradient."""

from collections.abc import Collection

from tightship.graph.backward.gradient_context import FLOATS
from tightship.graph.ir import Graph, Node
from tightship.graph.operators import OF_SHAPES, NoGradient, row_of


def has_no_slope(node: Node) -> bool:
    """Whether the gradient of a node's operator is zero everywhere."""
    gradient = row_of(node).gradient
    return isinstance(gradient, NoGradient) and gradient.is_zero


def leading_through(graph: Graph, targets: Collection[str]) -> set[str]:
    """Find values that depend on a target with a gradient, targets included."""
    wanted = set(targets)
    for node in graph.nodes:
        if wanted.isdisjoint(node.reads) or has_no_slope(node):
            continue
        wanted.update([name for name in node.writes if graph.value(name).dtype in FLOATS])
    return wanted


def changing_with(graph: Graph, targets: Collection[str]) -> set[str]:
    """Find values that depend on a target's elements, targets included."""
    changing = set(targets)
    for node in graph.nodes:
        if row_of(node).gradient is not OF_SHAPES and not changing.isdisjoint(node.reads):
            changing.update(node.writes)
    return changing
