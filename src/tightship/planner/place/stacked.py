"""Buffers one on another, in an order that somebody chose."""

from tightship._core import place_stacked
from tightship.planner.problem import Int64Array, Problem


def stacked(problem: Problem, order: Int64Array) -> Int64Array:
    """Place each buffer on top of those before it that it meets, never below one.

    Args:
        problem: n buffers.
        order: A permutation of range(n), first placed first.

    Complexity: O(n log n).
    """
    return place_stacked(problem.columns(), order)
