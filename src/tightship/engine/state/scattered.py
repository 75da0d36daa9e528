"""Rule of ScatterND that writes every element of a value, in order: exports of masks have such.

Assignments to `mask[:, :, :, :length]` become one where `length` is the whole axis. The indices are
then the places of all elements, and the result is what is written.
"""

from collections.abc import Sequence
from dataclasses import replace

from tightship.engine.state.capacity import Rewriter
from tightship.engine.state.follow import Linear
from tightship.engine.state.rules import elementwise, rule
from tightship.engine.state.writer import VERSION
from tightship.graph import Node

ONE: Linear = (0, 1)
ALL_ZERO = 0
"""Axis of a value whose elements are all zero: no axis, as axes are counted from the end."""


@rule("ScatterND")
def scatter_rule(r: Rewriter, node: Node) -> None:
    """Write what a node writes over every element of a value, as the result.

    Raises:
        GraphError: It may write over a part of them, or in another order.
    """
    data, indices, updates = node.inputs[:3]
    shape = r.followed.shape(data)
    is_plain = node.attributes.get("reduction", "none") == "none"
    if not (is_plain and r.followed.shape(updates) == shape and _places_all(r, indices, shape)):
        raise r.refusal(
            node, "an operand that grows with the past, of which it may write a part (only a "
            "whole value, in the order of its elements, is known)"
        )  # fmt: skip
    elementwise(
        r, replace(node, operator="Identity", inputs=(updates,), attributes={}, version=VERSION)
    )


def _places_all(r: Rewriter, indices: str, shape: Sequence[Linear]) -> bool:
    """Whether indices are the places of all elements of a value, in order."""
    found = _maker(r, indices)
    rank = len(shape)
    if r.followed.shape(indices) != (*shape, (0, rank)) or found is None:
        return False
    if found.operator != "Concat" or found.attributes.get("axis") not in (-1, rank):
        return False
    return len(found.inputs) == rank and all(
        _axis(r, name) in ((place - rank - 1,) if length != ONE else (ALL_ZERO,))
        for place, (name, length) in enumerate(zip(found.inputs, shape, strict=True))
    )


def _axis(r: Rewriter, name: str) -> int | None:
    """Return the axis along which elements of a value are 0, 1, ..., counted from the end.

    `ALL_ZERO` if it has one element; None if the elements are others.
    """
    node = _maker(r, name)
    if node is None:
        return None
    if node.operator == "Range":
        start, delta = (r.followed.elements(node.inputs[index]) for index in (0, 2))
        counts = start == ((0, 0),) and delta == (ONE,)
        return _of_lengths(r.followed.shape(name)) if counts else None
    before = _axis(r, node.inputs[0]) if node.inputs else None
    shapes = [r.followed.shape(each) for each in (node.inputs[0], name)] if before else []
    if not before or node.operator in ("Cast", "Expand", "Identity"):
        return before  # an axis of several elements stays as long, and in its place from the end
    if node.operator == "Slice":
        steps = node.inputs[4] if len(node.inputs) > 4 else ""
        is_whole = shapes[0] == shapes[1] and (not steps or r.followed.elements(steps) == (ONE,))
        return before if is_whole else None
    return _moved(before, *shapes) if node.operator in ("Reshape", "Unsqueeze") else None


def _of_lengths(shape: Sequence[Linear]) -> int:
    return ALL_ZERO if shape[0] == ONE else -1


def _moved(axis: int, before: Sequence[Linear], after: Sequence[Linear]) -> int | None:
    """Return an axis where axes of one element were added or removed; None if others were."""
    (old, new) = ([place for place, length in enumerate(shape) if length != ONE]
                  for shape in (before, after))  # fmt: skip
    if [before[place] for place in old] != [after[place] for place in new]:
        return None
    return new[old.index(len(before) + axis)] - len(after)


def _maker(r: Rewriter, name: str) -> Node | None:
    return next((node for node in r.followed.graph.nodes if name in node.writes), None)
