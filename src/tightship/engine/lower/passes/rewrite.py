"""Rebuilds a graph from changed nodes, without unused ones; helpers of all passes."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import is_

from tightship.graph import Constant, Graph, Node, Value
from tightship.graph.operators import row_of


def rebuilt(
    graph: Graph,
    nodes: Iterable[Node],
    *,
    constants: Mapping[str, Constant] | None = None,
    values: Mapping[str, Value] | None = None,
) -> Graph:
    """Replace the nodes of `graph`, and add constants and types of new values.

    Nodes and constants that no output depends on are dropped.
    """
    added = {name: Value(name, c.dtype, c.shape) for name, c in (constants or {}).items()}
    all_constants = {**graph.constants, **(constants or {})}
    needed = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(list(nodes)):
        if needed.intersection(node.writes):
            kept.append(_trimmed(node, needed))
            needed.update(node.reads)
    kept.reverse()
    found = {name: c for name, c in all_constants.items() if name in needed}
    is_same = len(kept) == len(graph.nodes) and all(map(is_, kept, graph.nodes))
    if is_same and not constants and not values and len(found) == len(graph.constants):
        return graph
    return replace(
        graph,
        nodes=tuple(kept),
        constants=found,
        values={**graph.values, **added, **(values or {})},
    )


def _trimmed(node: Node, needed: set[str]) -> Node:
    """Drop optional outputs that have no reader."""
    if len(node.outputs) < 2 or not row_of(node).trims:
        return node
    rest = [name if name in needed else "" for name in node.outputs[1:]]
    while rest and not rest[-1]:
        rest.pop()
    return replace(node, outputs=(node.outputs[0], *rest))


def sole_reader(counts: Mapping[str, int], readers: Mapping[str, Node], name: str) -> Node | None:
    """Return the only node that reads `name`; None if others do, or it is a graph output.

    `counts` are the graph's `uses`, which include graph outputs.
    """
    return readers.get(name) if counts.get(name, 0) == 1 else None


def readers_of(graph: Graph) -> dict[str, Node]:
    """Map each name to the last node that reads it."""
    return {name: node for node in graph.nodes for name in node.reads}
