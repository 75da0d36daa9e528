"""Repairs a placement that is too high by local search in one interval of steps at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship.planner.part import part_of
from tightship.planner.placements.exact import FREE, fit
from tightship.planner.problem import Int64Array, Problem

LIVE_COUNT_MAX = 1_000
"""Most live buffers of an interval that is searched."""

SEARCH_PAIRS = 20_000_000
"""Pairs of buffers that the search in one interval may compare."""

SCAN_PAIRS = 2
"""Effort of finding the buffers of an interval, in pairs for each buffer of the problem."""

TARGETS = 3
"""Number of peaks that are tried: the target, then each halfway from the last to the present."""


def repair(
    problem: Problem, offset_bytes: Int64Array, target_bytes: int, *, effort: int
) -> tuple[Int64Array, int]:
    """Move buffers that end above a target down to it, or as far as possible.

    Around each such buffer an interval of steps is chosen. The buffers that live only in the
    interval are placed again, between the others, which stay. The interval grows until that
    succeeds or too many buffers are live in it. The peak never rises.

    Args:
        problem: n buffers.
        offset_bytes: A placement; shape (n,).
        target_bytes: Highest end that a buffer may have.
        effort: Pairs of buffers to compare, roughly.

    Returns:
        The placement, and the effort that was spent.

    Complexity: O(n) for each interval, and the search's.

    Source: Shaw, "Using Constraint Programming and Local Search Methods to Solve Vehicle Routing
    Problems", 1998: large neighbourhoods, here of neighbours in time.
    """
    repaired = offset_bytes.copy()
    left = effort
    for _ in range(TARGETS):
        left -= _repair_to(problem, repaired, target_bytes, left)
        peak = int((repaired + problem.size_bytes).max(initial=0))
        if left <= 0 or peak <= target_bytes:
            break
        target_bytes += (peak - target_bytes) // 2
    return repaired, effort - left


@dataclass(frozen=True, slots=True)
class _Interval:
    """An interval of steps: the buffers live in it, and which of them live only in it."""

    live: Int64Array
    free: NDArray[np.bool_]


def _repair_to(problem: Problem, offset_bytes: Int64Array, target_bytes: int, effort: int) -> int:
    """Change offsets in place; return the effort that was spent."""
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


def _stretches(problem: Problem, buffer: int, over: NDArray[np.bool_]) -> Iterator[_Interval]:
    """Yield growing intervals around a buffer; none cuts the lifetime of a buffer to be lowered."""
    start, stop = problem.start_step, problem.stop_step
    begin, end = int(start[buffer]), int(stop[buffer])
    free_count = 0
    while True:
        # Doubling the length each time keeps the number of intervals logarithmic.
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
            yield _Interval(live, free)
        free_count = grown
        if free_count == problem.count:
            return
