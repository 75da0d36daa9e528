"""Folds a Pad of zeros into the padding of the convolution or average after it."""

from dataclasses import replace

from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import Graph, Node
from tightship.graph.ir import AttributeValue


def fold_pad(graph: Graph) -> Graph:
    """Fold Pad of zeros around images into the Conv or AveragePool that alone reads it."""
    counts = graph.uses()
    pads = {
        node.outputs[0]: node
        for node in graph.nodes
        if node.operator == "Pad" and not node.domain and counts.get(node.outputs[0]) == 1
    }
    nodes = []
    for node in graph.nodes:
        pad = pads.get(node.inputs[0]) if node.inputs else None
        nodes.append(node if pad is None else _folded(graph, node, pad) or node)
    return rebuilt(graph, nodes)


def _folded(graph: Graph, node: Node, pad: Node) -> Node | None:
    added = _added(graph, pad)
    if added is None or node.domain or len(added) < 6 or min(added) < 0:
        return None
    rank = len(added) // 2
    begin, end = added[:rank], added[rank:]
    if any((*begin[:2], *end[:2])) or node.attributes.get("auto_pad", "NOTSET") != "NOTSET":
        return None
    own = node.attributes.get("pads", (0,) * (2 * (rank - 2)))
    assert isinstance(own, tuple)
    is_average = node.operator == "AveragePool"
    if is_average and (any(own) or node.attributes.get("ceil_mode", 0)):
        return None
    if node.operator != "Conv" and not is_average:
        return None
    inner = tuple(int(size) for size in own)
    total = tuple(a + b for a, b in zip(inner, (*begin[2:], *end[2:]), strict=True))
    attributes: dict[str, AttributeValue] = {**node.attributes, "pads": total}
    if is_average:
        attributes["count_include_pad"] = 1
    return replace(node, inputs=(pad.inputs[0], *node.inputs[1:]), attributes=attributes)


def _added(graph: Graph, pad: Node) -> tuple[int, ...] | None:
    """Return the zeros added before and after each axis; None if the Pad does anything else."""
    if pad.attributes.get("mode", "constant") not in ("constant", b"constant"):
        return None
    if len(pad.inputs) < 2:
        pads, value = pad.attributes.get("pads"), pad.attributes.get("value", 0.0)
        return tuple(int(p) for p in pads) if isinstance(pads, tuple) and value == 0 else None
    fill = pad.inputs[2] if len(pad.inputs) > 2 else ""
    number = graph.constant(fill) if fill else None
    constant = graph.constant(pad.inputs[1])
    named = len(pad.inputs) > 3 and pad.inputs[3]
    if constant is None or named or (fill and (number is None or number.array().any())):
        return None
    return tuple(int(p) for p in constant.array().reshape(-1).tolist())
