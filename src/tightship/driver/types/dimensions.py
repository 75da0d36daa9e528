"""The algebra of partly known dimensions.

An axis of 0 is unknown. No dimensions at all are those of a scalar, or of a tensor whose rank is
unknown.
"""

import math

Dimensions = tuple[int, ...]


def combine(first: Dimensions, second: Dimensions) -> Dimensions | None:
    """What is known when both are: the other where one is unknown; None if they contradict."""
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
    """Number of elements where all axes are known; 1 for a scalar."""
    return math.prod(dimensions)
