"""Stores values of a lowered program that wait for late readers in bfloat16.

Slots are converted whole, whatever the layout of their values, by steps of the program: the planner
orders them and counts their bytes like any other's. What a product reads rounded is stored as it
is, and widened for other late readers.
"""

from collections import Counter
from collections.abc import Collection

from tightship._core import Attributes, NativeKernel, PrimitiveDesc
from tightship.engine.lower.steps.builder import DST, SRC
from tightship.engine.lower.steps.relocated_work import relocated_work
from tightship.engine.program.program import (
    Lowered,
    LoweredStep,
    NativeWork,
    Operand,
    PrimitiveWork,
    Sharing,
    Slot,
    Space,
)
from tightship.engine.program.schedule import schedule_of
from tightship.graph import DType
from tightship.graph.operators import Category, find
from tightship.planner.halved import NARROWS, halved
from tightship.planner.schedule import Step


def with_stored_halves(lowered: Lowered) -> Lowered:
    """Store float32 values in bfloat16 until their late readers run.

    Masks and results of elementwise steps of one stored operand are computed again instead.
    Weights, their state, their gradients, and sums and statistics much smaller than what they are
    computed from stay float32. Inputs and outputs do too.
    """
    given = schedule_of(lowered)
    wide = _candidates(lowered, DType.FLOAT32)
    rounded = _rounded(lowered, wide)
    narrow = {source.slot: target.slot for source, target in rounded.values()}
    cheap = _candidates(lowered, DType.BOOL) | _elementwise(lowered) | {*narrow.values()}
    found = halved(given, wide, cheap, narrow)
    if len(found.origin) == len(lowered.steps):
        return lowered
    more = found.schedule.values[len(given.values) :]
    slots = (*lowered.slots, *(Slot(v.name, v.size_bytes, external=False) for v in more))
    steps = []
    for step, index in zip(found.schedule.steps, found.origin, strict=True):
        if index >= 0:
            steps.append(_moved(lowered.steps[index], given.steps[index], step))
        else:
            pair = rounded.get(step.reads[0])
            steps.append(
                _conversion(step, slots, narrows=index == NARROWS)
                if pair is None
                else _reordered(step, *pair)
            )
    return lowered._replace(steps=tuple(steps), slots=slots)


def _moved(step: LoweredStep, given: Step, found: Step) -> LoweredStep:
    """Return a step under the name and on the slots that the schedule has found for it."""
    before, after = (*given.reads, *given.writes), (*found.reads, *found.writes)
    slots = {a: b for a, b in zip(before, after, strict=True) if a != b}
    if not slots:
        return step

    def move(operand: Operand) -> Operand:
        if operand.space is not Space.ARENA or operand.slot not in slots:
            return operand
        return operand._replace(slot=slots[operand.slot])

    sharing = [Sharing(slots.get(each.output, each.output), slots.get(each.input, each.input),
                       each.kind) for each in step.sharing]  # fmt: skip
    return step._replace(
        name=found.name,
        reads=tuple(map(move, step.reads)),
        writes=tuple(map(move, step.writes)),
        work=relocated_work(step.work, move),
        sharing=tuple(sharing),
    )


def _candidates(lowered: Lowered, dtype: DType) -> set[int]:
    """Return the slots of the arena that one step writes and that hold one type alone."""
    writers = Counter(
        slot for step in lowered.steps for slot in {operand.slot for operand in step.writes
                                                    if operand.space is Space.ARENA}
    )  # fmt: skip
    found = {slot for slot, count in writers.items() if count == 1}
    for step in lowered.steps:
        for operand in (*step.reads, *step.writes):
            if operand.space is Space.ARENA and not _is_of(operand, dtype):
                found.discard(operand.slot)
    return found


def _rounded(lowered: Lowered, wide: Collection[int]) -> dict[int, tuple[Operand, Operand]]:
    """Return whole values that a step rounds for a product, and what it writes, by its slot."""
    found: dict[int, tuple[Operand, Operand]] = {}
    taken: set[int] = set()
    for step in lowered.steps:
        if step.operator != "Reorder":
            continue
        (source,), (target,) = step.reads, step.writes
        is_rounding = source.slot in wide and target.dtype is DType.BFLOAT16
        if is_rounding and source.slot not in taken and _is_whole(lowered, source):
            found[target.slot] = source, target
            taken.add(source.slot)
    return found


def _is_whole(lowered: Lowered, operand: Operand) -> bool:
    desc, slot = operand.desc, lowered.slots[operand.slot]
    return desc is not None and (desc.offset_bytes, desc.size_bytes) == (0, slot.size_bytes)


def _reordered(step: Step, wide: Operand, narrow: Operand) -> LoweredStep:
    """Make the step that widens what a step has rounded for a product, into the layout before."""
    assert wide.desc is not None
    assert narrow.desc is not None
    target = wide._replace(name=step.name, slot=step.writes[0])
    desc = PrimitiveDesc.reorder(narrow.desc, wide.desc, Attributes())
    return LoweredStep(
        step.name, "Reorder", "onednn", desc.implementation, (narrow,), (target,),
        PrimitiveWork(desc, ((SRC, narrow), (DST, target))), desc.scratchpad_bytes,
    )  # fmt: skip


def _elementwise(lowered: Lowered) -> set[int]:
    """Return the slots that steps write element by element of one operand in the arena."""
    return {
        step.writes[0].slot
        for step in lowered.steps
        if len(step.reads) == len(step.writes) == 1
        and step.reads[0].space is step.writes[0].space is Space.ARENA
        and all(find(each).category is Category.ELEMENTWISE for each in step.operator.split("+"))
    }


def _is_of(operand: Operand, dtype: DType) -> bool:
    desc = operand.desc
    return operand.dtype is dtype and (desc is None or desc.dtype == dtype.value)


def _conversion(step: Step, slots: tuple[Slot, ...], *, narrows: bool) -> LoweredStep:
    """Make the step that converts the elements of a slot, one by one as they lie."""
    types = (DType.FLOAT32, DType.BFLOAT16) if narrows else (DType.BFLOAT16, DType.FLOAT32)
    (source,), (target,) = step.reads, step.writes
    count = slots[source].size_bytes // types[0].itemsize
    strides = [[dtype.itemsize] for dtype in types]
    kernel = NativeKernel.elementwise("Cast", [t.value for t in types], [count], strides, ())
    assert kernel is not None, types
    operands = [
        Operand(slots[slot].name, Space.ARENA, slot, dtype, (count,))
        for slot, dtype in zip((source, target), types, strict=True)
    ]
    work = NativeWork(kernel, tuple(operands))
    return LoweredStep(
        step.name, step.operator, "native", "Cast", (operands[0],), (operands[1],), work
    )
