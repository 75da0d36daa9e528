"""Places buffers as an allocator with best fit and coalescing would at run time."""

from tightship._core import place_best_fit
from tightship.planner.problem import Int64Array, Problem


def best_fit(problem: Problem) -> Int64Array:
    """Place buffers in the order of their first steps, without knowledge of later steps.

    Each buffer goes into the smallest free range below the high-water mark, or raises the mark. The
    range of a buffer is free again at its stop, before the buffers that start there are placed.

    Returns:
        Offsets in bytes; shape (n,).

    Complexity: O(n log k) for k live buffers.
    """
    return place_best_fit(problem.columns())
