"""Colours addresses: the arena is cut into few bands, and the same colour is the same bytes."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from math import sqrt

from tightship.view.network.network import Value

BANDS_MAX = 12
"""Most bands, each with a colour of its own."""
_BOUNDARIES_MAX = 256
"""Boundaries that are looked at; those of few bytes are left out first."""


def bands_of(values: Sequence[Value], arena_bytes: int) -> tuple[int, ...]:
    """Cut the arena where many values begin or end, large ones before small ones.

    If no more than `BANDS_MAX` bands are needed, every value is of whole bands.

    Returns:
        Offsets of the bands in rising order, and the end of the arena; `(0, 0)` for an empty one.
    """
    # Roots, so that many small values, as the last layers of a network, have bands as well.
    weights: defaultdict[int, float] = defaultdict(float)
    for value in values:
        if value.is_planned:
            weights[value.offset_bytes] += sqrt(value.size_bytes)
            weights[value.end_bytes] += sqrt(value.size_bytes)
    inner = sorted((at for at in weights if 0 < at < arena_bytes), key=lambda at: -weights[at])
    points = [0, *sorted(inner[:_BOUNDARIES_MAX]), arena_bytes]
    while len(points) > BANDS_MAX + 1:
        costs = [
            weights[points[i]] * sqrt(min(points[i] - points[i - 1], points[i + 1] - points[i]))
            for i in range(1, len(points) - 1)
        ]
        del points[1 + costs.index(min(costs))]
    return tuple(points)


def shares_of(value: Value, bands: Sequence[int]) -> list[tuple[int, float]]:
    """Return the bands that a value's bytes lie in, with the share of its bytes in each."""
    if not value.is_planned or len(bands) < 2:
        return []
    found = []
    band = min(len(bands) - 2, max(0, bisect_right(bands, value.offset_bytes) - 1))
    while band < len(bands) - 1 and bands[band] < value.end_bytes:
        low = max(value.offset_bytes, bands[band])
        high = min(value.end_bytes, bands[band + 1])
        if high > low:
            found.append((band, (high - low) / value.size_bytes))
        band += 1
    return found
