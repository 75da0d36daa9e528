"""Finds points in a backward pass at which it can release arena memory.

Activations die from the end of the network to its start, while gradients of weights, which outlive
the arena, are written one after another. The sum of both is largest in the middle of the pass
unless the arena shrinks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tightship.engine.plan.placement import Placement
from tightship.engine.program.program import LoweredStep, Space

UNIT_BYTES = 2 << 20
"""Unit of memory that is released: a huge page."""
APART_BYTES = 8 << 20
"""Bytes written outside the arena between two points; each point costs a system call and faults."""

Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ReleasePoint:
    """Ranges of the arena, start and stop in bytes, that no step from `step` on touches."""

    step: int
    ranges: Ranges


def release_points(placement: Placement, first: int) -> list[ReleasePoint]:
    """Find points among the steps from `first` on, in order; each range is released once.

    At most as many bytes are released as steps have written outside the arena so far.

    Args:
        placement: The placed step.
        first: Index of the first step of the backward pass.
    """
    steps = placement.lowered.steps
    left = _last_touches(placement)
    found: list[ReleasePoint] = []
    due_bytes = 0
    for index in range(first, len(steps) - 1):
        due_bytes += _written_outside(steps[index])
        if due_bytes < APART_BYTES:
            continue
        units = np.flatnonzero(left <= index)[: due_bytes // UNIT_BYTES]
        if len(units):
            left[units] = len(steps)
            due_bytes -= len(units) * UNIT_BYTES
            found.append(ReleasePoint(index + 1, tuple(_joined(units.tolist()))))
    return found


def _last_touches(placement: Placement) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return for each whole unit of the arena the last step that touches it."""
    plan, lowered = placement.schedule_plan, placement.lowered
    last = np.full(placement.arena_bytes // UNIT_BYTES, -1, np.int64)
    for index, step in enumerate(lowered.steps):
        touched = [
            (plan.value_offset(operand.slot) or 0, lowered.slots[operand.slot].size_bytes)
            for operand in (*step.reads, *step.writes)
            if operand.space is Space.ARENA
        ]
        scratch = plan.scratch_offset(index)
        if scratch is not None:
            touched.append((scratch, step.scratch_bytes))
        for start, size in touched:
            last[start // UNIT_BYTES : -(-(start + size) // UNIT_BYTES)] = index
    return last


def _written_outside(step: LoweredStep) -> int:
    return sum(o.size_bytes for o in step.writes if o.space is Space.EXTERNAL)


def _joined(units: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges of bytes of units, with adjacent units joined."""
    start = 0
    for place, unit in enumerate(units):
        if place + 1 == len(units) or units[place + 1] != unit + 1:
            yield units[start] * UNIT_BYTES, (unit + 1) * UNIT_BYTES
            start = place + 1
