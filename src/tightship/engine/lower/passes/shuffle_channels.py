"""Recognizes Reshape, Transpose, Reshape that interleave groups of channels."""

from dataclasses import replace

from tightship.engine.lower.passes.rewrite import readers_of, rebuilt, sole_reader
from tightship.graph import DType, Graph, Node


def shuffle_channels(graph: Graph) -> Graph:
    """Replace the channel shuffle of ShuffleNet by ChannelShuffle.

    `[N, g * c, H, W] -> [N, g, c, H, W] -> [N, c, g, H, W] -> [N, c * g, H, W]`.
    """
    counts, readers = graph.uses(), readers_of(graph)
    nodes: list[Node] = []
    absorbed: set[str] = set()
    for node in graph.nodes:
        if node.name in absorbed:
            continue
        transpose = last = None
        if node.operator == "Reshape":
            transpose = sole_reader(counts, readers, node.outputs[0])
        if transpose is not None and transpose.operator == "Transpose":
            last = sole_reader(counts, readers, transpose.outputs[0])
        if transpose is None or last is None or not _is_shuffle(graph, node, transpose, last):
            nodes.append(node)
            continue
        absorbed.update((transpose.name, last.name))
        groups = graph.value(node.outputs[0]).static_shape[1]
        nodes.append(
            replace(
                last,
                operator="ChannelShuffle",
                domain="tightship",
                inputs=(node.inputs[0],),
                attributes={"groups": groups},
            )
        )
    return rebuilt(graph, nodes)


def _is_shuffle(graph: Graph, split: Node, transpose: Node, join: Node) -> bool:
    names = (split.inputs[0], split.outputs[0], join.outputs[0])
    values = [graph.value(name) for name in names]
    if join.operator != "Reshape" or not all(value.is_static for value in values):
        return False
    before, between, after = (value.static_shape for value in values)
    return (
        values[0].dtype is DType.FLOAT32
        and len(before) == 4
        and 0 not in before
        and before == after
        and len(between) == 5
        and between[0] == before[0]
        and between[3:] == before[2:]
        and transpose.attributes.get("perm") == (0, 2, 1, 3, 4)
    )
