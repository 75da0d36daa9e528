"""Arithmetic of partly known dimensions.

An axis of 0 is unknown. Empty dimensions are those of a scalar or of a tensor of unknown rank.
"""

import math

Dimensions = tuple[int, ...]
"""Shape of a tensor; an axis of 0 is unknown."""


def combine(first: Dimensions, second: Dimensions) -> Dimensions | None:
    """Merge two partial descriptions of the same dimensions; None if they contradict."""
    if not first or first == second:
        return second
    if not second:
        return first
    if len(first) != len(second):
        return None
    combined = []
    for one, other in zip(first, second, strict=True):
        if one and other and one != other:
            return None
        combined.append(one or other)
    return tuple(combined)


def is_specified(dimensions: Dimensions, *, is_scalar: bool) -> bool:
    """Whether rank and every axis are known."""
    return not dimensions if is_scalar else bool(dimensions) and 0 not in dimensions


def element_count(dimensions: Dimensions) -> int:
    """Return the number of elements of known dimensions; 1 for a scalar."""
    return math.prod(dimensions)
