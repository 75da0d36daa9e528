"""Defines whole blocks that values share, without offsets and without splitting."""

from dataclasses import dataclass

import numpy as np

from tightship.planner.problem import Int64Array, Problem
from tightship.planner.schedule import Alias

NO_BLOCK = -1
"""Marks a value outside the arena, or one without bytes, instead of a block's index."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The block of each value and of each step's scratch.

    Attributes:
        size_bytes: Size of each block, as `block_sizes` computes it.
        of_value: Index of each value's block; `NO_BLOCK` where `Buffers` has no buffer.
        of_scratch: Index of the block of each step's scratch; `NO_BLOCK` where `Buffers` has none.
        in_place: IN_PLACE aliases taken, in the order of their steps.
    """

    size_bytes: tuple[int, ...]
    of_value: tuple[int, ...]
    of_scratch: tuple[int, ...]
    in_place: tuple[Alias, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Sum of the sizes of all blocks."""
        return sum(self.size_bytes)


def block_sizes(problem: Problem, block_of: Int64Array, count: int) -> Int64Array:
    """Compute the size of each block: its largest buffer, rounded up to its largest alignment.

    Blocks that lie one after another then have the alignments that an arena's buffers have, so
    that sums of blocks compare with arenas.

    Args:
        problem: n buffers.
        block_of: The block of each buffer; int64 of shape (n,).
        count: Number of blocks.

    Returns:
        Sizes in bytes; int64 of shape (count,).
    """
    sizes, alignment = np.zeros(count, np.int64), np.ones(count, np.int64)
    np.maximum.at(sizes, block_of, problem.size_bytes)
    np.maximum.at(alignment, block_of, problem.alignment)
    return (sizes + alignment - 1) // alignment * alignment
