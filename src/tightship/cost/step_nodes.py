"""Nodes of a graph as the steps of its schedule, and under other names."""

from collections.abc import Sequence
from dataclasses import replace

from tightship.graph import Graph, Node
from tightship.planner import Step


def planned_nodes(graph: Graph) -> list[Node]:
    """Return the nodes that are steps of the schedule: results of others follow from shapes."""
    return [node for node in graph.nodes if not is_known(graph, node)]


def is_known(graph: Graph, node: Node) -> bool:
    """Whether all results of a node follow from shapes."""
    return bool(graph.known) and all(name in graph.known for name in node.writes)


def renamed(node: Node, step: Step, before: Step, names: Sequence[str]) -> Node:
    """Return a node that reads and writes what a step does.

    Args:
        node: The node.
        step: The step that it becomes.
        before: The step that it was.
        names: Names of all values.
    """
    moved = {
        names[old]: names[new]
        for old, new in zip(
            (*before.reads, *before.writes), (*step.reads, *step.writes), strict=True
        )
    }
    own = [moved.get(name, name) for name in node.outputs]
    name = next((new for old, new in zip(node.outputs, own, strict=True) if new != old), node.name)
    inputs = tuple([moved.get(each, each) for each in node.inputs])
    return replace(node, name=name, inputs=inputs, outputs=tuple(own))
