"""Orders in which buffers are placed; the first key counts most, ties go by index."""

import numpy as np
from numpy.typing import NDArray

from tightship.planner.problem import Int64Array, Problem

Key = Int64Array | NDArray[np.float64]


def by_size(problem: Problem) -> Int64Array:
    """Largest first."""
    return _descending(problem.size_bytes)


def by_area(problem: Problem) -> Int64Array:
    """Largest size times lifetime first."""
    return _descending(_area(problem))


def by_lifetime(problem: Problem) -> Int64Array:
    """Longest lived first; then the largest."""
    return _descending(_lifetime(problem), problem.size_bytes)


def by_size_and_lifetime(problem: Problem) -> Int64Array:
    """Largest size times (1 + log of lifetime) first."""
    return _descending(problem.size_bytes * (1 + np.log(_lifetime(problem))))


def by_start(problem: Problem) -> Int64Array:
    """Earliest first step first; then the longest lived."""
    return _descending(-problem.start_step, _lifetime(problem))


def by_stop(problem: Problem) -> Int64Array:
    """Latest stop first; then the longest lived."""
    return _descending(problem.stop_step, _lifetime(problem))


def by_load(problem: Problem) -> Int64Array:
    """Largest load during the lifetime first; then the longest lived, then the largest area."""
    return _descending(_load_max(problem), _lifetime(problem), _area(problem))


def by_load_and_area(problem: Problem) -> Int64Array:
    """Largest load during the lifetime first; then the largest area, then the longest lived."""
    return _descending(_load_max(problem), _area(problem), _lifetime(problem))


def by_load_and_start(problem: Problem) -> Int64Array:
    """Largest load during the lifetime first; then the earliest start, then the largest."""
    return _descending(_load_max(problem), -problem.start_step, problem.size_bytes)


def by_load_and_size(problem: Problem) -> Int64Array:
    """Largest load during the lifetime first; then the largest, then the longest lived."""
    return _descending(_load_max(problem), problem.size_bytes, _lifetime(problem))


def _lifetime(problem: Problem) -> Int64Array:
    return problem.stop_step - problem.start_step


def _area(problem: Problem) -> NDArray[np.float64]:
    return problem.size_bytes.astype(np.float64) * _lifetime(problem)


def _load_max(problem: Problem) -> Int64Array:
    """For each buffer the largest load of a step of its lifetime.

    The load changes only where a buffer starts or stops. `highest[j][i]` is the largest of the
    2**j loads from the i-th such step on, so two of its entries cover any lifetime.
    """
    steps = np.unique(np.concatenate([problem.start_step, problem.stop_step]))
    start = np.searchsorted(steps, problem.start_step)
    stop = np.searchsorted(steps, problem.stop_step)
    change = np.zeros(len(steps), np.int64)
    np.add.at(change, start, problem.size_bytes)
    np.subtract.at(change, stop, problem.size_bytes)
    highest = [np.cumsum(change)]
    span = 1
    while 2 * span <= len(steps):
        last = highest[-1]
        highest.append(np.maximum(last[:-span], last[span:]))
        span *= 2
    level = np.log2(stop - start).astype(np.int64)
    result = np.empty(problem.count, np.int64)
    for power in np.unique(level):
        chosen = level == power
        row = highest[power]
        result[chosen] = np.maximum(row[start[chosen]], row[stop[chosen] - 2 ** int(power)])
    return result


def _descending(*keys: Key) -> Int64Array:
    return np.lexsort([-key for key in reversed(keys)]).astype(np.int64)
