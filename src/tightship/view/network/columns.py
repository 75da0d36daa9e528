"""Cuts a tall layout into columns, where few edges cross, so that it fits a window."""

from collections.abc import Sequence
from math import sqrt

ASPECT = 1.6
"""Width of a picture to its height."""
_COLUMNS_MAX = 12
_REACH = 0.3
"""Share of a column's height within which a cut may move to where fewer edges cross."""


def cuts_of(
    tops: Sequence[float],
    height: float,
    width: float,
    crossing: Sequence[int],
    aspect: float = ASPECT,
) -> list[int]:
    """Return the first rank of each column; the first is 0.

    Args:
        tops: Top of each rank, in rising order.
        height: Height of all ranks.
        width: Width of all ranks.
        crossing: Number of edges between each rank and the one before it.
        aspect: Width of the picture to its height that is wanted.
    """
    if not tops:
        return [0]
    count = min(_COLUMNS_MAX, max(1, round(sqrt(aspect * height / max(1.0, width)))))
    found = [0]
    for column in range(1, count):
        wanted, reach = height * column / count, _REACH * height / count
        near = [
            rank for rank in range(found[-1] + 1, len(tops)) if abs(tops[rank] - wanted) <= reach
        ]
        if near:
            found.append(min(near, key=lambda rank: (crossing[rank], abs(tops[rank] - wanted))))
    return found
