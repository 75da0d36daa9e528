"""Axes and other integers of a node, from an attribute or an input."""

from collections.abc import Sequence
from typing import Any

from tightship.engine.kernels.kernel_context import axis_of
from tightship.graph import Node


def operand(operands: Sequence[Any], place: int) -> Any:  # noqa: ANN401
    """Return an operand; None if it is left out."""
    return operands[place] if place < len(operands) else None


def axis_attribute(node: Node) -> int | None:
    """Return the attribute `axis`; None if it is absent."""
    found = node.attributes.get("axis")
    return found if isinstance(found, int) else None


def integers(node: Node, name: str, operands: Sequence[Any], place: int) -> tuple[int, ...] | None:
    """Return a list that is an attribute or, in newer opsets, an input; None if it is absent."""
    value = node.attributes.get(name)
    if isinstance(value, tuple):
        return tuple(map(int, value))
    given = operand(operands, place)
    return None if given is None else tuple(given.reshape(-1).tolist())


def axes_of(node: Node, operands: Sequence[Any], place: int, rank: int) -> tuple[int, ...] | None:
    """Return the axes of a node, counted from the front; None if it names none."""
    found = integers(node, "axes", operands, place)
    return None if found is None else tuple(axis_of(axis, rank) for axis in found)
