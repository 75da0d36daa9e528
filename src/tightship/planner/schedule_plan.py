"""Buffers of a schedule, and the plan that gives them offsets."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tightship.brief import brief
from tightship.planner.plan import Plan
from tightship.planner.problem import Problem
from tightship.planner.schedule import Alias, Schedule

NO_BUFFER = -1
"""Marks a value outside the arena, or one without bytes, instead of a buffer's index."""


@brief
@dataclass(frozen=True, slots=True)
class Buffers:
    """The buffers of a schedule.

    Attributes:
        problem: The buffers to place.
        of_value: Index in `problem` of each value's buffer; `NO_BUFFER` for an external value, a
            view of one, and a value that no step writes.
        of_scratch: Index in `problem` of each step's scratch; `NO_BUFFER` for a step without
            scratch.
        in_place: The IN_PLACE aliases that were taken.
        parts: The PART aliases that were taken.
        inside: Bytes between the start of a buffer and a value in it, where these are not 0.
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


@brief
@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """The plan of a schedule: the buffer of each value and scratch, and the buffer's offset."""

    schedule: Schedule
    buffers: Buffers
    plan: Plan

    def value_offset(self, value: int) -> int | None:
        """Return bytes from the arena's base; None for a value outside the arena."""
        offset = self._offset(self.buffers.of_value[value])
        return None if offset is None else offset + self.buffers.inside.get(value, 0)

    def scratch_offset(self, step: int) -> int | None:
        """Return bytes from the arena's base; None for a step without scratch."""
        return self._offset(self.buffers.of_scratch[step])

    def _offset(self, buffer: int) -> int | None:
        return None if buffer == NO_BUFFER else int(self.plan.offset_bytes[buffer])
