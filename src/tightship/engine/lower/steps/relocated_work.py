"""Replaces the operands of a step's work."""

from collections.abc import Callable

from tightship.engine.program.program import (
    ControlWork,
    KernelWork,
    NativeWork,
    Operand,
    PrimitiveWork,
    ReferenceWork,
    Work,
)


def relocated_work(work: Work, move: Callable[[Operand], Operand]) -> Work:
    """Apply `move` to every operand of the work."""
    if isinstance(work, PrimitiveWork):
        return work._replace(arguments=tuple((number, move(o)) for number, o in work.arguments))
    if isinstance(work, NativeWork):
        return work._replace(operands=tuple(map(move, work.operands)))
    if isinstance(work, ControlWork):
        outputs, inputs = tuple(map(move, work.outputs)), tuple(map(move, work.inputs))
        return work._replace(outputs=outputs, inputs=inputs)
    assert isinstance(work, KernelWork | ReferenceWork)
    sources = tuple(None if operand is None else move(operand) for operand in work.inputs)
    targets = tuple(None if operand is None else move(operand) for operand in work.outputs)
    return work._replace(inputs=sources, outputs=targets)
