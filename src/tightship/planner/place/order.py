"""Orders in which buffers are placed; the first key counts most, ties go by index."""

import numpy as np
from numpy.typing import NDArray

from tightship.planner.problem import Int64Array, Problem


def by_size(problem: Problem) -> Int64Array:
    """Largest first; of equal sizes the longest lived."""
    return _descending(problem.size_bytes, _lifetime(problem))


def by_area(problem: Problem) -> Int64Array:
    """Largest size times lifetime first."""
    return _descending(problem.size_bytes.astype(np.float64) * _lifetime(problem))


def by_lifetime(problem: Problem) -> Int64Array:
    """Longest lived first; of equal lifetimes the largest."""
    return _descending(_lifetime(problem), problem.size_bytes)


def by_size_and_lifetime(problem: Problem) -> Int64Array:
    """Largest size times (1 + log of lifetime) first."""
    return _descending(problem.size_bytes * (1 + np.log(_lifetime(problem))))


def by_start(problem: Problem) -> Int64Array:
    """Earliest first step first; of equal starts the largest."""
    return np.lexsort((-problem.size_bytes, problem.start_step)).astype(np.int64)


def by_stop(problem: Problem) -> Int64Array:
    """Latest stop first; of equal stops the largest."""
    return _descending(problem.stop_step, problem.size_bytes)


def _lifetime(problem: Problem) -> Int64Array:
    return problem.stop_step - problem.start_step


def _descending(*keys: Int64Array | NDArray[np.float64]) -> Int64Array:
    return np.lexsort([-key for key in reversed(keys)]).astype(np.int64)
