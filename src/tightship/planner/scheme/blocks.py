"""Defines whole blocks that values share, without offsets and without splitting."""

from dataclasses import dataclass

from tightship.planner.schedule import Alias

NO_BLOCK = -1
"""Marks a value outside the arena, or one without bytes, instead of a block's index."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The block of each value and of each step's scratch.

    Attributes:
        size_bytes: Size of each block, which is that of its largest value.
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
