"""Renames the values of nodes and bodies."""

from collections.abc import Mapping
from dataclasses import replace

from tightship.graph.ir import Graph, Node


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
