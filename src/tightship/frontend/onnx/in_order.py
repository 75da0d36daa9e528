"""Topological order of nodes.

ONNX requires it of files; ONNX Runtime does not, and its converter to float16 appends casts of
inputs after the nodes that read them.
"""

import heapq
from collections.abc import Iterator, Sequence

from onnx import GraphProto, NodeProto


def in_order(nodes: Sequence[NodeProto]) -> Sequence[NodeProto]:
    """Return the nodes unchanged if they are in order, else in the nearest order.

    Nodes on a cycle, or behind one, come last.
    """
    makers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.output:
            makers.setdefault(name, index)
    needed = [{makers[name] for name in _read(node) if name in makers} for node in nodes]
    if all(max(each, default=-1) < index for index, each in enumerate(needed)):
        return nodes
    readers: list[list[int]] = [[] for _ in nodes]
    for index, each in enumerate(needed):
        for maker in each:
            readers[maker].append(index)
    missing = [len(each) for each in needed]
    ready = [index for index, count in enumerate(missing) if count == 0]
    order: list[int] = []
    while ready:
        order.append(heapq.heappop(ready))
        for reader in readers[order[-1]]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heapq.heappush(ready, reader)
    left = sorted(set(range(len(nodes))) - set(order))
    return [nodes[index] for index in (*order, *left)]


def _read(node: NodeProto) -> Iterator[str]:
    """Yield names that a node reads, or that its subgraphs may capture."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield from _read_within(graph)


def _read_within(graph: GraphProto) -> Iterator[str]:
    yield from (value.name for value in graph.output)
    for node in graph.node:
        yield from _read(node)
