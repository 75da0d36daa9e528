"""Lowered steps as the schedule that the planner plans."""

from tightship.engine.program.program import Lowered, LoweredStep, Operand, Space
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
    reads, writes = _slots(step.reads), _slots(step.writes)
    if not written.isdisjoint(writes):
        reads = tuple(dict.fromkeys([*reads, *[slot for slot in writes if slot in written]]))
        writes = tuple([slot for slot in writes if slot not in written])
    written.update(writes)
    aliases = tuple([Alias(s.output, s.input, s.kind) for s in step.sharing])
    return Step(step.name, step.operator, reads, writes, step.scratch_bytes, aliases)


def _slots(operands: tuple[Operand, ...]) -> tuple[int, ...]:
    slots = []
    for operand in operands:
        space, slot = operand.space, operand.slot
        if (space is Space.ARENA or space is Space.EXTERNAL) and slot not in slots:
            slots.append(slot)
    return tuple(slots)
