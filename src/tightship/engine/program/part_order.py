"""Keeps readers of a value behind all of its writers, each of which writes a part."""

from collections import Counter

from tightship.engine.program.program import Lowered, LoweredStep, Operand, Slot, Space
from tightship.graph import DType


def with_parts_in_order(lowered: Lowered) -> Lowered:
    """Add an empty value from each further writer of a slot to the slot's readers.

    A schedule knows only the first writer of a value; without these values, a reader could move
    before the others.
    """
    counts = Counter(slot for step in lowered.steps for slot in _written(step))
    if all(count == 1 for count in counts.values()):
        return lowered
    slots, steps = [*lowered.slots], []
    begun: dict[int, list[Operand]] = {}
    for step in lowered.steps:
        read = {operand.slot for operand in step.reads if operand.space is Space.ARENA}
        reads = [mark for slot in sorted(read) for mark in begun.get(slot, ())]
        writes = []
        for slot in sorted(_written(step)):
            marks = begun.get(slot)
            if marks is None:
                begun[slot] = []
            else:
                mark = Operand(f"{step.name}.part", Space.ARENA, len(slots), DType.UINT8, (0,))
                slots.append(Slot(mark.name, 0, external=False))
                marks.append(mark)
                writes.append(mark)
        steps.append(step._replace(reads=(*step.reads, *reads), writes=(*step.writes, *writes)))
    return lowered._replace(slots=tuple(slots), steps=tuple(steps))


def _written(step: LoweredStep) -> set[int]:
    return {operand.slot for operand in step.writes if operand.space is Space.ARENA}
