"""Places buffers by first fit in a given order."""

from tightship._core import place_first_fit
from tightship.planner.problem import Int64Array, Problem


def first_fit(problem: Problem, order: Int64Array) -> Int64Array:
    """Place each buffer at the lowest offset that is free for its whole lifetime.

    Buffers are placed in the given order, and never move once placed. The offsets are valid for any
    order; the order decides the peak.

    Args:
        problem: n buffers.
        order: A permutation of range(n), first placed first.

    Returns:
        Offsets in bytes; int64 of shape (n,).

    Complexity: O(n k) for k buffers placed before.
    """
    return place_first_fit(problem.columns(), order)
