"""Problems that are known to fit: a full rectangle, cut into buffers."""

import random

import numpy as np

from tightship.planner.problem import Problem

Cell = tuple[int, int, int, int]
"""Start, stop, offset, top."""


def planted(seed: int, cuts: int, capacity: int, steps: int = 40, shaved: float = 0) -> Problem:
    """A problem of `capacity` bytes that fits without a hole, or nearly so.

    Cells are cut across, along, or as a pinwheel, which no sequence of straight cuts yields.

    Args:
        seed: The same seed gives the same problem.
        cuts: How many cells are cut.
        capacity: The height of the rectangle.
        steps: The width of the rectangle.
        shaved: The part of the buffers that are made one byte smaller.
    """
    drawn = random.Random(seed)
    cells = cut_cells(drawn, cuts, capacity, steps)
    rows = [
        (top - offset - (top - offset > 1 and drawn.random() < shaved), start, stop, 1)
        for start, stop, offset, top in cells
    ]
    return Problem(*np.array(rows, np.int64).T, capacity_bytes=capacity)


def cut_cells(drawn: random.Random, cuts: int, capacity: int, steps: int = 40) -> list[Cell]:
    """A full rectangle of `capacity` bytes and `steps` steps, cut into cells in some order."""
    cells: list[Cell] = [(0, steps, 0, capacity)]
    for _ in range(cuts):
        cell = cells.pop(drawn.randrange(len(cells)))
        cells.extend(_cut(cell, drawn))
    drawn.shuffle(cells)
    return cells


def _cut(cell: Cell, drawn: random.Random) -> list[Cell]:
    start, stop, offset, top = cell
    wide, high = stop - start, top - offset
    if wide >= 3 and high >= 3 and drawn.random() < 0.3:
        left, right = sorted(drawn.sample(range(start + 1, stop), 2))
        low, up = sorted(drawn.sample(range(offset + 1, top), 2))
        return [
            (start, right, offset, low), (right, stop, offset, up), (left, stop, up, top),
            (start, left, low, top), (left, right, low, up),
        ]  # fmt: skip
    if high >= 2 and (wide < 2 or drawn.random() < 0.5):
        middle = drawn.randrange(offset + 1, top)
        return [(start, stop, offset, middle), (start, stop, middle, top)]
    if wide >= 2:
        middle = drawn.randrange(start + 1, stop)
        return [(start, middle, offset, top), (middle, stop, offset, top)]
    return [cell]
