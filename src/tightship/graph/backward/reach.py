"""Finds values of a graph that depend on others with a gradient."""

from collections.abc import Collection

from tightship.graph.backward.gradient_context import FLOATS
from tightship.graph.backward.rules import FLAT, OF_SHAPES
from tightship.graph.ir import Graph


def leading_through(graph: Graph, targets: Collection[str]) -> set[str]:
    """Find values that depend on a target with a gradient, targets included."""
    wanted = set(targets)
    for node in graph.nodes:
        if wanted.isdisjoint(node.reads) or (node.operator in FLAT and not node.domain):
            continue
        wanted.update([name for name in node.writes if graph.value(name).dtype in FLOATS])
    return wanted


def changing_with(graph: Graph, targets: Collection[str]) -> set[str]:
    """Find values that depend on a target's elements, targets included."""
    changing = set(targets)
    for node in graph.nodes:
        if node.operator not in OF_SHAPES and not changing.isdisjoint(node.reads):
            changing.update(node.writes)
    return changing
