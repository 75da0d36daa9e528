"""Cuts consecutive steps out of a program, with inputs and outputs of their own."""

from dataclasses import replace

from tightship.cluster.cut_table import Lifetimes, slots_of, weights_of
from tightship.engine.plan.footprint import stored_runtime_bytes
from tightship.engine.plan.placement import Placement, place
from tightship.engine.program.program import Lowered, Operand, Slot, Space

Interval = tuple[int, int]


def stage_of(lowered: Lowered, found: Lifetimes, steps: Interval) -> Lowered:
    """Return the steps `[start, stop)` of a program as a program of its own, for planning.

    Its slots keep their numbers; those that it does not touch have no bytes.
    """
    start, stop = steps
    own = lowered.steps[start:stop]
    operands = [each for step in own for each in (*step.reads, *step.writes)]
    touched = set(slots_of(operands))
    weights = sorted(frozenset().union(*map(weights_of, own)))
    received = {slot for slot in touched if not start <= found.first_write[slot] < stop}
    sent = {slot for slot in touched if slot not in received and found.last_read[slot] >= stop}
    outputs = {slot for slot in touched if lowered.slots[slot].external} | sent
    slots = tuple([
        Slot(slot.name, slot.size_bytes, index in received | outputs)
        if index in touched else Slot(slot.name, 0, external=True)
        for index, slot in enumerate(lowered.slots)
    ])  # fmt: skip
    named = _named(lowered, operands)
    return replace(
        lowered,
        steps=own,
        slots=slots,
        weights=tuple([lowered.weights[index] for index in weights]),
        inputs={lowered.slots[slot].name: named[slot] for slot in sorted(received)},
        outputs={lowered.slots[slot].name: named[slot] for slot in sorted(outputs - received)},
    )


def _named(lowered: Lowered, operands: list[Operand]) -> dict[int, Operand]:
    """Return an operand for each slot: the program's own input or output if it is one."""
    found = {
        each.slot: each
        for each in operands
        if each.space is Space.ARENA or each.space is Space.EXTERNAL
    }
    ends = (*lowered.inputs.values(), *lowered.outputs.values())
    return found | {each.slot: each for each in ends if each.slot in found}


def placed(lowered: Lowered, found: Lifetimes, steps: Interval) -> tuple[Placement, int]:
    """Place a stage; return it with the bytes of its plan: tensors, weights and runtime."""
    placement = place(stage_of(lowered, found, steps))
    tensors = placement.weights_bytes + placement.arena_bytes + placement.io_bytes
    return placement, tensors + stored_runtime_bytes(placement.lowered)
