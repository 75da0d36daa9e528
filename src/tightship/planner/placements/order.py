"""Orders in which buffers are placed, as permutations of indices; ties go to the lower index."""

import numpy as np
from numpy.typing import NDArray

from tightship._core import live_max, sorted_rows
from tightship.planner.problem import Int64Array, Problem

Key = Int64Array | NDArray[np.float64]


def by_size(problem: Problem) -> Int64Array:
    """Order by size, largest first."""
    return _descending(problem.size_bytes)


def by_area(problem: Problem) -> Int64Array:
    """Order by size times lifetime, largest first."""
    return _descending(_area(problem))


def by_lifetime(problem: Problem) -> Int64Array:
    """Order by lifetime, longest first; then by size."""
    return _descending(_lifetime(problem), problem.size_bytes)


def by_size_and_lifetime(problem: Problem) -> Int64Array:
    """Order by size times (1 + log of lifetime), largest first."""
    return _descending(problem.size_bytes * (1 + np.log(_lifetime(problem))))


def by_start(problem: Problem) -> Int64Array:
    """Order by first step, earliest first; then the longest lived first."""
    return _descending(-problem.start_step, _lifetime(problem))


def by_stop(problem: Problem) -> Int64Array:
    """Order by stop, latest first; then the longest lived first."""
    return _descending(problem.stop_step, _lifetime(problem))


def by_load(problem: Problem) -> Int64Array:
    """Order by the largest live bytes during the lifetime; then by lifetime, then by area."""
    return _descending(_live_max(problem), _lifetime(problem), _area(problem))


def by_load_and_area(problem: Problem) -> Int64Array:
    """Order by the largest live bytes during the lifetime; then by area, then by lifetime."""
    return _descending(_live_max(problem), _area(problem), _lifetime(problem))


def by_load_and_start(problem: Problem) -> Int64Array:
    """Order by the largest live bytes during the lifetime; then by start, then by size."""
    return _descending(_live_max(problem), -problem.start_step, problem.size_bytes)


def by_load_and_reach(problem: Problem) -> Int64Array:
    """Order by the largest live bytes during the lifetime; then by reach around the peak.

    The reach is the smaller number of steps from the peak to an end of the lifetime. The buffers
    live at the peak are thereby stacked with the shortest on top, which leaves room on both sides.
    """
    load = _live_max(problem)
    highest = load == load.max(initial=0)
    peak_step = problem.start_step[highest].max(initial=0)
    reach = np.minimum(peak_step - problem.start_step, problem.stop_step - peak_step)
    return _descending(load, reach, problem.size_bytes)


def by_rough_load(problem: Problem) -> Int64Array:
    """Order by the largest live bytes in thousandths of the peak; then by lifetime, by size."""
    load = _live_max(problem)
    thousandth = max(1, int(load.max(initial=0)) // 1000)
    return _descending(load // thousandth, _lifetime(problem), problem.size_bytes)


def by_load_and_size(problem: Problem) -> Int64Array:
    """Order by the largest live bytes during the lifetime; then by size, then by lifetime."""
    return _descending(_live_max(problem), problem.size_bytes, _lifetime(problem))


def by_share_and_load(problem: Problem, parts: int = 2) -> Int64Array:
    """Put the largest one part in `parts` first; then order by live bytes, then by lifetime."""
    load, lifetime = _live_max(problem), _lifetime(problem)
    return _descending(_is_large(problem, parts), load, lifetime, problem.size_bytes)


def by_load_and_share(problem: Problem, parts: int = 2) -> Int64Array:
    """Order by live bytes; then put the largest one part in `parts` first, then by lifetime."""
    load, lifetime = _live_max(problem), _lifetime(problem)
    return _descending(load, _is_large(problem, parts), lifetime, problem.size_bytes)


def _is_large(problem: Problem, parts: int) -> Int64Array:
    """Return 1 for the largest one part in `parts`, without those as large as the next; else 0."""
    sizes = np.sort(problem.size_bytes)
    next_size = sizes[problem.count - 1 - problem.count // parts] if problem.count else 0
    is_large: Int64Array = (problem.size_bytes > next_size).astype(np.int64)
    return is_large


def _lifetime(problem: Problem) -> Int64Array:
    return problem.stop_step - problem.start_step


def _area(problem: Problem) -> NDArray[np.float64]:
    return problem.size_bytes.astype(np.float64) * _lifetime(problem)


def _live_max(problem: Problem) -> Int64Array:
    """Return for each buffer the largest live bytes of any step of its lifetime."""
    return live_max(problem.columns())


def _descending(*keys: Key) -> Int64Array:
    return sorted_rows([_falling(key) for key in keys])


def _falling(key: Key) -> Int64Array:
    """Negate keys as integers: the bits of floats >= 0 are in the order of the floats."""
    return -(key.view(np.int64) if key.dtype == np.float64 else key).astype(np.int64)
