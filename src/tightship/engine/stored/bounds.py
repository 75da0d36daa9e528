"""Checks that a stored program touches only bytes that its plan assigns."""

from collections.abc import Collection, Iterator

from tightship.engine.plan.placement import Placement
from tightship.engine.program.program import (
    ControlWork,
    KernelWork,
    LoweredStep,
    NativeWork,
    Operand,
    PrimitiveWork,
    Space,
)
from tightship.engine.stored.fields import MalformedError
from tightship.graph import DType

DESTINATION = 17


def check_bounds(placement: Placement, written: Collection[int] = ()) -> None:
    """Refuse a program that would touch a byte outside its arena, weights or inputs.

    Weights and inputs may only be read.

    Args:
        placement: Placed program.
        written: Slots that it may write besides its outputs, as a body does.

    Raises:
        MalformedError: A step would touch such a byte, or lacks an operand; names the step.
    """
    outputs = {*written, *(operand.slot for operand in placement.lowered.outputs.values())}
    for index, step in enumerate(placement.lowered.steps):
        if isinstance(step.work, KernelWork):
            _check_arrays(placement, step, step.work)
        for operand in _written(step):
            theirs = operand.space is Space.EXTERNAL and operand.slot in outputs
            if operand.space is not Space.ARENA and not theirs:
                raise MalformedError(f"step `{step.name:.60}` writes over `{operand.name:.60}`")
        if not _has_scratch(placement, index, step):
            raise MalformedError(f"step `{step.name:.60}` has too little scratch")
        if isinstance(step.work, ControlWork):
            from tightship.engine.stored.control_bounds import check_control  # few have such

            check_control(step, step.work, placement.lowered.threads)
        for operand, low, high in _reached(step):
            before, room = _room(placement, operand)
            start = 0 if operand.space is Space.WEIGHTS else operand.offset_bytes
            if start + low < -before or start + high > room:
                raise MalformedError(f"step `{step.name:.60}` leaves `{operand.name:.60}`")


def _reached(step: LoweredStep) -> Iterator[tuple[Operand, int, int]]:
    """Yield operands and the byte range touched of each, relative to where it is bound."""
    work = step.work
    bound = [*step.reads, *step.writes]
    if isinstance(work, PrimitiveWork):
        bound += [operand for _, operand in work.arguments]
        yield from _of_primitive(step, work)
    elif isinstance(work, ControlWork):
        bound += [*work.outputs, *work.inputs]
    elif isinstance(work, NativeWork):
        yield from _of_kernel(step, work)
    for operand in bound:
        yield operand, 0, operand.desc.end_bytes if operand.desc else operand.size_bytes


def _written(step: LoweredStep) -> tuple[Operand, ...]:
    work = step.work
    if isinstance(work, NativeWork):
        return work.operands[len(work.operands) - work.kernel.written :]
    if isinstance(work, PrimitiveWork):
        return tuple([operand for number, operand in work.arguments if number == DESTINATION])
    if isinstance(work, ControlWork):
        return work.outputs
    if isinstance(work, KernelWork):
        return tuple([operand for operand in work.outputs if operand is not None])
    return ()


def _check_arrays(placement: Placement, step: LoweredStep, work: KernelWork) -> None:
    """Check that a Python step has dense arrays of exactly what it reads and writes."""
    lowered = placement.lowered
    ports = {
        port.slot: port.dtype for port in (*lowered.inputs.values(), *lowered.outputs.values())
    }
    used = [operand for operand in (*work.inputs, *work.outputs) if operand is not None]
    if not {*step.reads, *step.writes}.issuperset(used):
        raise MalformedError(f"step `{step.name:.60}` has an operand that it does not use")
    for operand in (*step.reads, *step.writes):
        is_part = operand.space is Space.ARENA or (
            operand.space is Space.EXTERNAL and ports.get(operand.slot) is DType.UINT8
        )
        is_whole = operand.size_bytes == _room(placement, operand)[1] and (
            operand.space is Space.WEIGHTS or ports.get(operand.slot) is operand.dtype
        )
        if operand.desc is not None or not (is_part or is_whole):
            raise MalformedError(f"step `{step.name:.60}` has no array of `{operand.name:.60}`")


def _of_kernel(step: LoweredStep, work: NativeWork) -> Iterator[tuple[Operand, int, int]]:
    reach = work.kernel.reach()
    if len(reach) != len(work.operands):
        raise MalformedError(f"step `{step.name:.60}` has another number of operands")
    for operand, (low, high) in zip(work.operands, reach, strict=True):
        first = 0 if operand.desc is None else operand.desc.offset_bytes
        yield operand, first + low, first + high


def _of_primitive(step: LoweredStep, work: PrimitiveWork) -> Iterator[tuple[Operand, int, int]]:
    bound = dict(work.arguments)
    if len(bound) < len(work.arguments):
        raise MalformedError(f"step `{step.name:.60}` has an argument twice")
    for argument, size in work.desc.reach():
        if argument not in bound:
            raise MalformedError(f"step `{step.name:.60}` lacks its argument {argument}")
        yield bound[argument], 0, size


def _has_scratch(placement: Placement, index: int, step: LoweredStep) -> bool:
    work, needed = step.work, 0
    if isinstance(work, PrimitiveWork):
        needed = work.desc.scratchpad_bytes
    elif isinstance(work, NativeWork):
        needed = work.kernel.scratch_bytes(placement.lowered.threads)
    elif isinstance(work, KernelWork):
        needed = work.kernel.scratch_bytes
    offset = placement.schedule_plan.scratch_offset(index)
    if offset is None:
        return needed == 0 == step.scratch_bytes
    return needed <= step.scratch_bytes <= placement.arena_bytes - offset


def _room(placement: Placement, operand: Operand) -> tuple[int, int]:
    """Return the bytes available before and after the start of an operand's slot."""
    if operand.space is Space.WEIGHTS:
        return 0, placement.lowered.weights[operand.slot].size_bytes
    if operand.space is Space.EXTERNAL:
        return 0, placement.lowered.slots[operand.slot].size_bytes
    offset = placement.schedule_plan.value_offset(operand.slot) or 0
    return offset, placement.arena_bytes - offset
