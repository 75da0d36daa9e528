"""Packs buffers from the bottom up, and learns an order from buffers that end too high."""

from tightship._core import place_lowest_first, place_promote
from tightship.planner.problem import Int64Array, Problem


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
