"""New names for values, and graphs whose values have been renamed."""

from collections.abc import Mapping
from dataclasses import replace

from tightship.graph.ir import Graph, Node


class NewNames:
    """Names that are unused in a graph and its nodes' subgraphs, each given once."""

    def __init__(self, graph: Graph) -> None:
        self._taken = _names_of(graph)
        self._given: dict[str, str] = {}

    def new(self, wanted: str) -> str:
        """Return `wanted`, or the first of `wanted.2`, `wanted.3`, ... that is unused."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}.{count}"
        self._taken.add(name)
        return name

    def of(self, wanted: str) -> str:
        """Return the same new name each time that `wanted` is asked for."""
        if wanted not in self._given:
            self._given[wanted] = self.new(wanted)
        return self._given[wanted]


def _names_of(graph: Graph) -> set[str]:
    found = {*graph.inputs, *graph.values, *graph.constants, *graph.known, *graph.captures}
    for node in graph.nodes:
        found.update(node.writes)
        for body in node.subgraphs:
            found |= _names_of(body)
    return found


def renamed_node(node: Node, names: Mapping[str, str]) -> Node:
    """Rename the values of a node and of its subgraphs."""
    if names.keys().isdisjoint((*node.reads, *node.outputs)):
        return node
    attributes = {
        name: renamed(value, names) if isinstance(value, Graph) else value
        for name, value in node.attributes.items()
    }
    return replace(
        node,
        inputs=tuple([names.get(name, name) for name in node.inputs]),
        outputs=tuple([names.get(name, name) for name in node.outputs]),
        attributes=attributes,
    )


def renamed(body: Graph, names: Mapping[str, str]) -> Graph:
    """Rename captures and constants of a body; renamed ones become captures."""
    read = (*body.captures, *body.constants)
    around = {name: names[name] for name in read if name in names}
    if not around:
        return body
    types = {new: replace(body.value(old), name=new) for old, new in around.items()}
    captures = (*(each for each in body.captures if each not in around), *around.values())
    return replace(
        body,
        outputs=tuple([around.get(name, name) for name in body.outputs]),
        nodes=tuple([renamed_node(node, around) for node in body.nodes]),
        values={**body.values, **types},
        constants={name: each for name, each in body.constants.items() if name not in around},
        captures=tuple(dict.fromkeys(captures)),
    )
