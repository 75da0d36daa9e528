"""Which nodes of a graph read what."""

from tightship.graph import Graph, Node


def last_reads(graph: Graph) -> dict[str, int]:
    """Position of the last node that reads each name; past the end for graph outputs."""
    last = {name: index for index, node in enumerate(graph.nodes) for name in node.reads}
    return last | dict.fromkeys(graph.outputs, len(graph.nodes))


def readers_in_order(graph: Graph) -> dict[str, list[Node]]:
    """The nodes that read each name."""
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in node.reads:
            readers.setdefault(name, []).append(node)
    return readers
