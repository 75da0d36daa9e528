"""Mending a placement where it is too high, by search in a stretch of steps at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship.planner.part import part_of
from tightship.planner.place.exact import FREE, fit
from tightship.planner.problem import Int64Array, Problem

LIVE_COUNT_MAX = 1_000
"""A stretch in which more buffers are live is not searched."""

SEARCH_PAIRS = 20_000_000
"""Pairs of buffers that the search in one stretch may look at."""

SCAN_PAIRS = 2
"""What looking for the buffers of a stretch takes, in pairs for each buffer there is."""

TARGETS = 3
"""Peaks that are tried: the one wanted, then each time half as far from what there is."""


def mend(
    problem: Problem, offset_bytes: Int64Array, target_bytes: int, *, effort: int
) -> tuple[Int64Array, int]:
    """Bring buffers that end above a target down to it, or some of the way.

    Around each of them the buffers that live in a stretch of steps, all of it, are placed anew
    between those that reach beyond the stretch, which stay. The stretch grows until that succeeds
    or too much is live in it. The peak never rises.

    Args:
        problem: n buffers.
        offset_bytes: A placement; shape (n,).
        target_bytes: No buffer is to end above.
        effort: Pairs of buffers to look at, roughly.

    Returns:
        The placement, and the effort that was spent.

    Complexity: O(n) for each stretch, and the search's.
    Source: Shaw, "Using Constraint Programming and Local Search Methods to Solve Vehicle Routing
    Problems", 1998: large neighbourhoods, here of neighbours in time.
    """
    mended = offset_bytes.copy()
    left = effort
    for _ in range(TARGETS):
        left -= _mend_to(problem, mended, target_bytes, left)
        peak = int((mended + problem.size_bytes).max(initial=0))
        if left <= 0 or peak <= target_bytes:
            break
        target_bytes += (peak - target_bytes) // 2
    return mended, effort - left


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Steps, which buffers are live in them, and which of these nowhere else."""

    live: Int64Array
    free: NDArray[np.bool_]


def _mend_to(problem: Problem, offset_bytes: Int64Array, target_bytes: int, effort: int) -> int:
    """Change offsets in place; the effort that was spent."""
    left = effort
    is_hopeless = np.zeros(problem.count, np.bool_)
    while left > 0:
        over = offset_bytes + problem.size_bytes > target_bytes
        waiting = np.flatnonzero(over & ~is_hopeless)
        left -= SCAN_PAIRS * problem.count
        if waiting.size == 0:
            break
        is_hopeless[waiting[0]] = True
        for stretch in _stretches(problem, int(waiting[0]), over):
            live = stretch.live
            found = fit(
                part_of(problem, live),
                target_bytes,
                effort=min(left, SEARCH_PAIRS),
                pins=np.where(stretch.free, FREE, offset_bytes[live]),
            )
            left -= found.effort + SCAN_PAIRS * problem.count
            if found.verdict == "fits":
                offset_bytes[live] = found.offset_bytes
                break
            is_hopeless[live] = True
            if left <= 0:
                break
    return effort - left


def _stretches(problem: Problem, buffer: int, over: NDArray[np.bool_]) -> Iterator[_Stretch]:
    """Wider and wider stretches around a buffer; none cuts one that is to be brought down."""
    start, stop = problem.start_step, problem.stop_step
    begin, end = int(start[buffer]), int(stop[buffer])
    free_count = 0
    while True:
        reach = max(1, (end - begin) // 2)
        wanted = begin - reach, end + reach
        while wanted != (begin, end):
            begin, end = wanted
            live = np.flatnonzero((start < end) & (stop > begin))
            if live.size > LIVE_COUNT_MAX:
                return
            high = live[over[live]]
            wanted = min(begin, int(start[high].min())), max(end, int(stop[high].max()))
        free = (start[live] >= begin) & (stop[live] <= end)
        grown = int(np.count_nonzero(free))
        if grown > free_count:
            yield _Stretch(live, free)
        free_count = grown
        if free_count == problem.count:
            return
