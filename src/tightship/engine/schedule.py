"""Lowered steps as the schedule that the planner plans."""

from tightship.engine.program import Lowered, LoweredStep, Operand, Space
from tightship.planner import Alias, Schedule, ScheduledValue, Step

ALIGNMENT = 64
"""Of every operand in the arena and in the weights, in bytes: a cache line, an AVX-512 register."""


def schedule_of(lowered: Lowered) -> Schedule:
    """What the planner needs to know of a lowered program."""
    values = tuple(
        ScheduledValue(slot.name, slot.size_bytes, ALIGNMENT, slot.external)
        for slot in lowered.slots
    )
    written: set[int] = set()
    return Schedule(values, tuple(_step(step, written) for step in lowered.steps))


def _step(step: LoweredStep, written: set[int]) -> Step:
    """A step as the planner sees it, given the slots that were written before it.

    To write a part of a slot of which others are written already is to use what it holds.
    """
    aliases = tuple(Alias(sharing.output, sharing.input, sharing.kind) for sharing in step.sharing)
    writes = tuple(slot for slot in _slots(step.writes) if slot not in written)
    earlier = [operand for operand in step.writes if operand.index in written]
    written.update(writes)
    return Step(
        step.name,
        step.operator,
        _slots((*step.reads, *earlier)),
        writes,
        step.scratch_bytes,
        aliases,
    )


def _slots(operands: tuple[Operand, ...]) -> tuple[int, ...]:
    planned = (Space.ARENA, Space.EXTERNAL)
    return tuple(dict.fromkeys(o.index for o in operands if o.space in planned))
