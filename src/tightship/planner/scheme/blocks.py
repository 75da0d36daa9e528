"""Whole blocks that values share: no offsets, no splitting."""

from dataclasses import dataclass

from tightship.planner.schedule import Alias

NO_BLOCK = -1
"""In place of a block's index: outside the arena, or no bytes at all."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Which block each value and each step's scratch has; a block is its largest tenant's size.

    `of_value` and `of_scratch` hold -1 where `Buffers` does. `in_place` lists the IN_PLACE
    aliases taken, in the order of their steps.
    """

    size_bytes: tuple[int, ...]
    of_value: tuple[int, ...]
    of_scratch: tuple[int, ...]
    in_place: tuple[Alias, ...] = ()

    @property
    def total_bytes(self) -> int:
        """What all blocks take side by side."""
        return sum(self.size_bytes)
