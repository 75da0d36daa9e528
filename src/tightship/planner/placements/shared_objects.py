"""Recycles whole blocks by reference counts, as the memory note's walk does."""

from tightship._core import place_shared_objects
from tightship.planner.problem import Int64Array, Problem

MATCH_RANGE = 16
"""Factor within which the sizes of a block and a request must be for a match."""


def shared_objects(problem: Problem, match_range: int = MATCH_RANGE) -> Int64Array:
    """Walk the steps with a pool of free blocks, and stack the blocks in the arena.

    A starting buffer takes the smallest matching block of its size or more, else the largest
    smaller one, which grows, else a new block; at its stop the block returns to the pool. A block
    is as large as its largest tenant and is never split or merged.

    Args:
        problem: n buffers.
        match_range: Factor within which sizes match; `MATCH_RANGE` by default, 0 recycles nothing.

    Returns:
        Offsets in bytes; int64 of shape (n,).

    Complexity: O(n log n).
    Source: MXNet, "Optimizing Memory Consumption in Deep Learning", and its match range.
    """
    return place_shared_objects(problem.columns(), match_range)
