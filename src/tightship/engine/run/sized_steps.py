"""Segments of an executable as steps over numbered values, which the core runs without Python."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tightship._core import SizedOperator, SizedProgram
from tightship.engine.kernels.sized.choice import NUMBERS
from tightship.engine.program.program import Operand, ReferenceWork, Space
from tightship.engine.run.executable import NativeSegment, PythonStep, Segment

RANK_MAX = 8
"""Most axes of an array that the core's operators take."""
ABSENT = -1

Key = tuple[Space, int, int, tuple[int, ...], str]
"""Space, slot, offset and shape of a planned operand and its type, or the name of an object."""


@dataclass(frozen=True, slots=True)
class SizedSteps:
    """A program with a step for each segment.

    Attributes:
        program: The steps; Python runs those without an operator, and what operators leave.
        planned: Planned operands that operators read or write, with the numbers of their values.
        objects: Numbers of the values that are objects, by name.
    """

    program: SizedProgram
    planned: tuple[tuple[Operand, int], ...]
    objects: Mapping[str, int]


def sized_steps(segments: Sequence[Segment]) -> SizedSteps | None:
    """Make a step of each segment; None if none has an operator of the core."""
    if not any(_operator(segment) for segment in segments):
        return None
    numbers: dict[Key, int] = {}
    planned: dict[Operand, int] = {}
    program = SizedProgram()

    def numbered(operands: Iterable[Operand | None]) -> list[int]:
        found = []
        for operand in operands:
            number = ABSENT
            if operand is not None:
                number = numbers.setdefault(_key(operand), len(numbers))
                if operand.space is not Space.OBJECT:
                    planned[operand] = number
            found.append(number)
        return found

    for segment in segments:
        if isinstance(segment, NativeSegment):
            program.add_planned(segment.first, segment.last)
            continue
        dying = [numbers.setdefault(_object_key(name), len(numbers)) for name in segment.frees]
        operator, work = _operator(segment), segment.work
        if operator is None:
            program.add(None, [], [], dying)
        else:
            program.add(operator, numbered(work.inputs), numbered(work.outputs), dying)
    program.reserve(len(numbers))
    objects = {key[-1]: number for key, number in numbers.items() if key[0] is Space.OBJECT}
    return SizedSteps(program, tuple(planned.items()), objects)


def _operator(segment: Segment) -> SizedOperator | None:
    """Return the operator of a step whose planned operands the core's operators take."""
    if not isinstance(segment, PythonStep) or not isinstance(segment.work, ReferenceWork):
        return None
    for operand in (*segment.work.inputs, *segment.work.outputs):
        if operand is None or operand.space is Space.OBJECT:
            continue
        if len(operand.shape) > RANK_MAX or operand.dtype not in NUMBERS:
            return None
    return segment.work.native


def _key(operand: Operand) -> Key:
    if operand.space is Space.OBJECT:
        return _object_key(operand.name)
    return operand.space, operand.slot, operand.offset_bytes, operand.shape, operand.dtype.value


def _object_key(name: str) -> Key:
    return Space.OBJECT, 0, 0, (), name
