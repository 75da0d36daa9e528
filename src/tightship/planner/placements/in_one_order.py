"""Places each buffer once, in one order, and never moves it again."""

from tightship._core import (
    place_best_fit,
    place_best_gap,
    place_first_fit,
    place_lowest_first,
    place_promote,
    place_stacked,
)
from tightship.planner.placements.order import by_size
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


def best_fit(problem: Problem) -> Int64Array:
    """Place buffers in the order of their first steps, without knowledge of later steps.

    Each buffer goes into the smallest free range below the high-water mark, or raises the mark. The
    range of a buffer is free again at its stop, before the buffers that start there are placed.

    Returns:
        Offsets in bytes; shape (n,).

    Complexity: O(n log k) for k live buffers.
    """
    return place_best_fit(problem.columns())


def greedy_by_size(problem: Problem) -> Int64Array:
    """Place the largest buffers first, each into the tightest gap that holds it.

    Returns:
        Offsets in bytes; int64 of shape (n,).

    Complexity: O(n k) for k buffers placed before.
    Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020:
    greedy by size for offset calculation.
    """
    return place_best_gap(problem.columns(), by_size(problem))


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


def lowest_first(problem: Problem, order: Int64Array) -> Int64Array:
    """Place, at each step, the buffer that can lie lowest on top of those placed so far.

    No buffer is put below one that is already placed, so offsets never fall. Of several buffers
    that can lie equally low, alignment apart, the first in the order is taken.

    Args:
        problem: n buffers.
        order: A permutation of range(n).

    Returns:
        Offsets in bytes; int64 of shape (n,).

    Complexity: O(n log n) time where lifetimes nest or are short, O(n sqrt n) at worst.
    Source: the first descent of the canonical search in Moffitt, "MiniMalloc: A Lightweight
    Memory Allocator for Hardware-Accelerated Machine Learning", 2023.
    """
    return place_lowest_first(problem.columns(), order)


def promote(problem: Problem, order: Int64Array, target_bytes: int, rounds: int) -> Int64Array:
    """Repeat `lowest_first`, each time promoting the buffers that end above a target.

    Promoted buffers move halfway to the front of the order. The smallest placement of all rounds
    is returned; the rounds end at `target_bytes`, or when the order no longer changes.

    Args:
        problem: n buffers.
        order: A permutation of range(n).
        target_bytes: The peak to reach.
        rounds: Most placements to try, at least 1.

    Returns:
        Offsets in bytes; int64 of shape (n,).

    Complexity: that of `lowest_first` for each round.
    Source: Joslin and Clements, "Squeaky Wheel Optimization", 1999.
    """
    return place_promote(problem.columns(), order, target_bytes, rounds)
