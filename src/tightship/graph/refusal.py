"""Graphs that stand for ones that cannot run on the shapes they are given."""

from collections.abc import Sequence
from dataclasses import replace

from tightship.graph.ir import Graph, Node, Value

REFUSAL = "tightship.refusal"
"""Domain of the one node of such a graph."""


def refusing_graph(name: str, reason: str, outputs: Sequence[Value]) -> Graph:
    """Make a graph that fails when it is run.

    Args:
        name: Name of the graph that it stands for.
        reason: Message of the error.
        outputs: Types of the outputs that it would have; their names are not used.
    """
    values = [replace(value, name=f"{name}/{place}") for place, value in enumerate(outputs)]
    names = tuple(value.name for value in values)
    node = Node(name, "Refuse", (), names, {"reason": reason}, REFUSAL)
    return Graph(name, (), names, {value.name: value for value in values}, (node,))
