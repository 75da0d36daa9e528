"""Removes masks of our Attention that only say which keys are in bounds."""

from dataclasses import replace

from tightship.engine.lower.passes.attention_bounds import (
    Bounds,
    LengthWriter,
    bounds_of,
    conditions_of,
)
from tightship.engine.lower.passes.index_cases import Affine
from tightship.engine.lower.passes.polynomial import Algebra
from tightship.graph import Node


def placed(bounds: Bounds) -> dict[str, int]:
    """Return the attributes that hold bounds."""
    return {"first": bounds.first, "ahead": bounds.ahead, "behind": bounds.behind}


def without_mask(algebra: Algebra, writer: LengthWriter, node: Node) -> Node | None:
    """Return an Attention whose mask became bounds, with nodes in `writer`; None if it cannot."""
    if len(node.inputs) != 4 or node.attributes["mask"] == "none":
        return None
    kind = str(node.attributes["mask"])
    _, keys, _, mask = (algebra.graph.value(name) for name in node.inputs)
    outer = algebra.graph.value(node.outputs[0]).static_shape
    scores = (*outer[:-1], keys.static_shape[-2])
    found = conditions_of(algebra, mask.name, kind, scores)
    if found is None:
        return None
    rank = len(scores)
    distance = Affine.of(rank - 1) - Affine.of(rank - 2)
    first, ahead, behind = (node.integer(name, 0) for name in ("first", "ahead", "behind"))
    if ahead >= 0:
        found = (*found, distance.times(-1).plus(first + ahead))
    if behind >= 0:
        found = (*found, distance.plus(behind - first))
    bounds = bounds_of(found, rank, scores[-2])
    if bounds is None:
        return None
    more = [] if bounds.length is None else ["", writer.name_of(bounds.length)]
    attributes = {**node.attributes, "mask": "none", **placed(bounds)}
    return replace(node, inputs=(*node.inputs[:3], *more), attributes=attributes)
