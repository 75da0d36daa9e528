"""The buffers of a schedule: what it has in place of values and scratch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tightship.planner.problem import Problem
from tightship.planner.schedule import Alias

NO_BUFFER = -1
"""In place of a buffer's index: outside the arena, or no bytes at all."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """The buffers of a schedule.

    `of_value` and `of_scratch` hold, for each value and each step, the index of its buffer in
    `problem`, or -1 where there is none: an external value, a view of one, a value that no step
    writes, a step without scratch. `in_place` and `parts` list the optional aliases that were
    taken. `inside` holds the bytes between the start of a buffer and a value, where there are any.
    """

    problem: Problem
    of_value: tuple[int, ...]
    of_scratch: tuple[int, ...]
    in_place: tuple[Alias, ...]
    parts: tuple[Alias, ...] = ()
    inside: Mapping[int, int] = field(default_factory=dict)

    @property
    def is_merged(self) -> bool:
        """Whether any optional alias was taken."""
        return bool(self.in_place or self.parts)
