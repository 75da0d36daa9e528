"""Translates lowered steps into the planner's schedule."""

from tightship.engine.program.program import Lowered, LoweredStep, Operand, Space
from tightship.planner import Alias, Schedule, ScheduledValue, Step

ALIGNMENT = 64
"""Alignment in bytes of operands in the arena and the weights: a cache line."""


def schedule_of(lowered: Lowered) -> Schedule:
    """Describe a lowered program to the planner."""
    values = tuple(
        ScheduledValue(slot.name, slot.size_bytes, ALIGNMENT, slot.external)
        for slot in lowered.slots
    )
    written: set[int] = set()
    return Schedule(values, tuple(_step(step, written) for step in lowered.steps))


def _step(step: LoweredStep, written: set[int]) -> Step:
    """Describe a step, given the slots that earlier steps wrote.

    Writing a part of a slot whose other parts are written counts as reading the slot.
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
