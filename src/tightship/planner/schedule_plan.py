"""Defines the plan of a schedule: offsets of its values and scratch."""

from dataclasses import dataclass

from tightship.planner.buffers import NO_BUFFER, Buffers
from tightship.planner.plan import Plan
from tightship.planner.schedule import Schedule


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
