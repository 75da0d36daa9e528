"""Whether what a program of a file touches lies where its plan has room for it."""

from tightship.engine.placement import Placement
from tightship.engine.program import NativeWork, Operand, PrimitiveWork, Space
from tightship.engine.stored.fields import MalformedError


def check_bounds(placement: Placement) -> None:
    """Refuse a program that would touch a byte outside its arena, its weights or its inputs.

    Raises:
        MalformedError: A step would; names it.
    """
    lowered, plan = placement.lowered, placement.schedule_plan
    for index, step in enumerate(lowered.steps):
        work, scratch = step.work, plan.scratch_offset(index)
        operands: list[Operand] = [*step.reads, *step.writes]
        if isinstance(work, PrimitiveWork):
            operands += [operand for _, operand in work.arguments]
            needed = work.desc.scratchpad_bytes
        elif isinstance(work, NativeWork):
            operands += work.operands
            needed = work.kernel.scratch_bytes(lowered.threads)
        if needed > step.scratch_bytes or (step.scratch_bytes and scratch is None):
            raise MalformedError(f"step `{step.name:.60}` needs {needed} bytes of scratch")
        if scratch is not None and scratch + step.scratch_bytes > placement.arena_bytes:
            raise MalformedError(f"the scratch of step `{step.name:.60}` is outside the arena")
        for operand in operands:
            if operand.offset_bytes + operand.size_bytes > _room(placement, operand):
                raise MalformedError(f"an operand of step `{step.name:.60}` leaves its room")


def _room(placement: Placement, operand: Operand) -> int:
    """Bytes from the start of an operand's slot to the end of what it may touch."""
    if operand.space is Space.WEIGHTS:
        return placement.lowered.weights[operand.slot].size_bytes
    if operand.space is Space.EXTERNAL:
        return placement.lowered.slots[operand.slot].size_bytes
    offset = placement.schedule_plan.value_offset(operand.slot) or 0
    return placement.arena_bytes - offset
