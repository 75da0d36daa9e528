"""Bounds from below the peak of plans that satisfy constraints."""

from itertools import pairwise

import numpy as np

from tightship._core import lower_bound as _lower_bound
from tightship.planner.constrained.items import Items, items_of
from tightship.planner.constraints import FREE, Constraints, ForbiddenRange
from tightship.planner.problem import Int64Array, Problem


def constrained_bound(problem: Problem, constraints: Constraints) -> int:
    """Compute `lower_bound` of a problem with constraints."""
    items = items_of(problem)
    bound = _lower_bound(_columns(items.rectangles, _padding(problem, constraints)))
    if constraints.banks:
        return max(bound, _alone_in_banks(constraints, items))
    pinned = _pinned_top(problem, constraints)
    return max(bound, pinned, _around_forbidden(constraints.forbidden, items))


def _padding(problem: Problem, constraints: Constraints) -> int:
    """Return the alignment to which all rectangles but the topmost of a step are padded.

    The alignment is 1 if there are banks, since each has a topmost rectangle, or if a gap keeps
    bytes that begin at any offset.
    """
    solid = problem.size_bytes > 0
    if constraints.banks or constraints.gap_window_bytes is not None or not solid.any():
        return 1
    return int(problem.alignment[solid].min())


def _columns(rectangles: Int64Array, alignment: int) -> Int64Array:
    _, start, stop, bottom, top = rectangles.T
    return np.stack([top - bottom, start, stop, np.full(len(start), alignment)])


def _pinned_top(problem: Problem, constraints: Constraints) -> int:
    pinned = constraints.pinned_offset_bytes
    if pinned is None:
        return 0
    return int((pinned + problem.size_bytes)[pinned != FREE].max(initial=0))


def _alone_in_banks(constraints: Constraints, items: Items) -> int:
    """Sum over banks the largest live bytes of the items that may use no other bank."""
    banks = items.columns[3][items.rectangles[:, 0]]
    # Items that could use several banks are left out, because any one bank may be without them.
    only = (_lower_bound(_columns(items.rectangles[banks == 1 << bank], 1))
            for bank in range(constraints.bank_count))  # fmt: skip
    return sum(only)


def _around_forbidden(forbidden: tuple[ForbiddenRange, ...], items: Items) -> int:
    """Return the highest top of live bytes laid around the bytes forbidden in their step."""
    ends = sorted({end for place in forbidden for end in (place.start_step, place.stop_step)})
    highest = 0
    for start, stop in pairwise(ends):
        rows = items.rectangles
        clipped = rows[(rows[:, 1] < stop) & (rows[:, 2] > start)].copy()
        clipped[:, 1] = np.maximum(clipped[:, 1], start)
        clipped[:, 2] = np.minimum(clipped[:, 2], stop)
        load = _lower_bound(_columns(clipped, 1))
        places = [p for p in forbidden if p.start_step <= start and stop <= p.stop_step]
        highest = max(highest, _top_around(load, places))
    return highest


def _top_around(load: int, forbidden: list[ForbiddenRange]) -> int:
    """Return the top that `load` bytes reach if they fill all bytes that are not forbidden."""
    top = 0
    for place in sorted(forbidden, key=lambda one: one.start_byte):
        if load <= place.start_byte - top:
            break
        load -= max(0, place.start_byte - top)
        top = max(top, place.stop_byte)
    return top + load if load else 0
