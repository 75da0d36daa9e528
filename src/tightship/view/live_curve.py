"""Draws the live bytes over the steps as a line."""

from collections.abc import Callable, Sequence
from itertools import pairwise


def live_curve(
    load: Sequence[tuple[int, int]],
    step_count: int,
    columns: int,
    y: Callable[[float], float],
    left: int,
) -> str:
    """Make the data of an SVG path: the largest live bytes of each column, held over its width.

    Args:
        load: Live bytes as (first step, bytes) at each change, in increasing order of steps.
        step_count: Steps of the picture, at least 1.
        columns: Number of columns, each one unit wide, from `left` on.
        y: Maps a number of bytes to its vertical position.
        left: Horizontal position of the first step.
    """
    highest = [0] * columns
    for (start, size_bytes), (stop, _) in pairwise((*load, (step_count, 0))):
        first = min(columns - 1, start * columns // step_count)
        for column in range(first, min(columns, -(-stop * columns // step_count))):
            highest[column] = max(highest[column], size_bytes)
    points = [f"M{left} {y(highest[0]):.1f}"]
    for column, (one, other) in enumerate(pairwise(highest), 1):
        if other != one:
            points.append(f"H{left + column}V{y(other):.1f}")
    return "".join((*points, f"H{left + columns}"))
