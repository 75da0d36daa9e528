"""Numbers of rows that a graph counts in its mask: the past length plus a constant.

Exporters sum the mask for them. Written as a sum of the past length, they let attention read which
rows are in use, and no mask is computed.
"""

from tightship.engine.state.capacity import Rewriter
from tightship.engine.state.generation import write_count
from tightship.graph import DType, Node

INTEGERS = frozenset({DType.INT32, DType.INT64})
KEEPING = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators that keep the elements of integers."""


def counted(r: Rewriter, node: Node) -> bool:
    """Write a number of rows from the past length, if a node computes one; return whether."""
    _follow_mask(r, node)
    added = _count_of(r, node)
    if added is None:
        return False
    target = node.outputs[0]
    write_count(r, target, added)
    r.counts[target] = added
    if added >= 0:
        r.indices.add(target)
    return True


def _follow_mask(r: Rewriter, node: Node) -> None:
    """Note masks of another type, which are ones for the same rows."""
    if node.operator in ("Cast", "Identity") and node.inputs[0] in r.masks:
        r.masks[node.outputs[0]] = r.masks[node.inputs[0]]


def _count_of(r: Rewriter, node: Node) -> int | None:
    """Return the number that a node's elements add to the past length; None if they are others."""
    if len(node.writes) != 1 or r.followed.graph.value(node.outputs[0]).dtype not in INTEGERS:
        return None
    first = node.inputs[0]
    if node.operator == "ReduceSum":
        return r.masks[first] if first in r.masks and _sums_rows(r, node) else None
    if node.operator in KEEPING:
        return r.counts.get(first)
    if node.operator in ("Add", "Sub", "Max") and len(node.inputs) == 2:
        return _combined(r, node)
    return None


def _combined(r: Rewriter, node: Node) -> int | None:
    """Return what the sum, difference or maximum of a count and a constant adds."""
    first, other = node.inputs
    if first not in r.counts and node.operator != "Sub":
        first, other = other, first
    added, number = r.counts.get(first), _number(r, other)
    if added is None or number is None:
        return None
    if node.operator == "Max":
        return added if added >= number else None
    return added + number if node.operator == "Add" else added - number


def _sums_rows(r: Rewriter, node: Node) -> bool:
    """Whether a reduction of a mask `[batch, rows]` removes the rows alone."""
    given = node.attributes.get("axes")
    if given is None:
        found = r.followed.elements(node.inputs[1]) if len(node.inputs) > 1 else None
        given = tuple(number for _, number in found or ())
    return isinstance(given, list | tuple) and [int(str(axis)) % 2 for axis in given] == [1]


def _number(r: Rewriter, name: str) -> int | None:
    """Return the integer that all elements of a constant are, whatever the past length."""
    found = r.followed.elements(name)
    if not found or len(set(found)) != 1 or found[0][0]:
        return None
    return found[0][1]
