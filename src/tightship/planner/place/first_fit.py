"""First fit over an order."""

from tightship._core import place_first_fit
from tightship.planner.problem import Int64Array, Problem


def first_fit(problem: Problem, order: Int64Array) -> Int64Array:
    """Place each buffer at the lowest offset free for its whole lifetime.

    Buffers are taken in the given order; a buffer placed earlier never moves. The offsets are
    valid for any order; the peak depends on it.

    Args:
        problem: n buffers.
        order: A permutation of range(n), first placed first.

    Complexity: O(n k) for k buffers placed before.
    """
    return place_first_fit(problem.columns(), order)
