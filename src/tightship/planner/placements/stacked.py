"""Stacks buffers in a given order."""

from tightship._core import place_stacked
from tightship.planner.problem import Int64Array, Problem


def stacked(problem: Problem, order: Int64Array) -> Int64Array:
    """Place each buffer on top of the earlier ones that are live together with it.

    Args:
        problem: n buffers.
        order: A permutation of range(n), first placed first.

    Returns:
        Offsets in bytes; int64 of shape (n,).

    Complexity: O(n log n).
    """
    return place_stacked(problem.columns(), order)
