"""Replaces the operands of a step's work."""

from collections.abc import Callable
from dataclasses import replace

from tightship.engine.program.program import (
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
        return replace(work, arguments=tuple((number, move(o)) for number, o in work.arguments))
    if isinstance(work, NativeWork):
        return replace(work, operands=tuple(map(move, work.operands)))
    assert isinstance(work, KernelWork | ReferenceWork)
    inputs = tuple(None if operand is None else move(operand) for operand in work.inputs)
    outputs = tuple(None if operand is None else move(operand) for operand in work.outputs)
    return replace(work, inputs=inputs, outputs=outputs)
