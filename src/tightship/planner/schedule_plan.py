"""Where the values and scratch of a schedule lie."""

from dataclasses import dataclass

from tightship.planner.buffers import NO_BUFFER, Buffers
from tightship.planner.plan import Plan
from tightship.planner.schedule import Schedule


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """A plan of a schedule: which buffer each value and scratch has, and where that lies."""

    schedule: Schedule
    buffers: Buffers
    plan: Plan

    def value_offset(self, value: int) -> int | None:
        """Bytes from the arena's base; None for a value outside the arena."""
        offset = self._offset(self.buffers.of_value[value])
        return None if offset is None else offset + self.buffers.inside.get(value, 0)

    def scratch_offset(self, step: int) -> int | None:
        """Bytes from the arena's base; None for a step without scratch."""
        return self._offset(self.buffers.of_scratch[step])

    def _offset(self, buffer: int) -> int | None:
        return None if buffer == NO_BUFFER else int(self.plan.offset_bytes[buffer])
