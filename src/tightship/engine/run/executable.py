"""Placement made ready to run: weights packed, primitives compiled, steps in segments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tightship._core import NativeProgram
from tightship.engine.library import library_threads
from tightship.engine.plan.footprint import calls_blas
from tightship.engine.plan.placement import Placement
from tightship.engine.program.program import (
    COMPILED,
    NATIVE_WORK,
    ControlWork,
    KernelWork,
    Lowered,
    LoweredStep,
    NativeWork,
    Operand,
    PrimitiveWork,
    ReferenceWork,
    Space,
)
from tightship.engine.weights.weight_store import PackedCopy, Progress, WeightStore
from tightship.planner import SchedulePlan

if TYPE_CHECKING:
    from tightship.engine.run.sized_steps import SizedSteps

SCRATCHPAD = 80


class NativeSegment(NamedTuple):
    """Steps `[first, last)` of the native program, run in one call."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class PythonStep:
    """Step that runs in Python; `index` is its index among the lowered steps."""

    index: int
    step: LoweredStep
    work: KernelWork | ReferenceWork
    frees: tuple[str, ...] = ()
    """Objects that no later step reads."""


Segment = NativeSegment | PythonStep


@dataclass(frozen=True, slots=True, eq=False)
class Executable:
    """Program ready to run: immutable, and shared by threads that have an arena each.

    Attributes:
        placement: Offsets of operands; without descriptions of primitives, some 30 KB each.
        weights: Packed weights, indexed as in the lowered program.
        native: Steps that run without Python.
        segments: All steps, in order.
        arena_bytes: Bytes that a run needs besides inputs and outputs.
        io_bytes: Bytes of inputs and outputs, which lie in the caller's memory.
        sized: The segments as steps of one program, if some have shapes that only the run knows.
    """

    placement: Placement
    weights: tuple[PackedCopy, ...]
    native: NativeProgram | None
    segments: tuple[Segment, ...]
    arena_bytes: int
    io_bytes: int
    sized: "SizedSteps | None" = None


def build(placement: Placement, store: WeightStore, progress: Progress | None = None) -> Executable:
    """Pack the weights that `store` lacks, and compile the primitives.

    Raises:
        OutOfMemoryError: Memory for the weights, or a library's buffer, cannot be allocated.
    """
    if calls_blas(placement.lowered):
        from tightship.engine.run.blas import reserve_blas_buffer

        reserve_blas_buffer()
    with library_threads(placement.lowered.threads):
        weights = store.copies(placement.lowered.weights, progress)
    native, segments = _segments(placement, weights)
    if native is not None:
        native.compile(placement.lowered.threads)
        native.bind_weights(_base(weights))
    sizes = placement.arena_bytes, placement.io_bytes
    return Executable(_compiled(placement), weights, native, segments, *sizes, _sized(segments))


def _sized(segments: Sequence[Segment]) -> "SizedSteps | None":
    works = [segment.work for segment in segments if isinstance(segment, PythonStep)]
    if not any(isinstance(work, ReferenceWork) and work.native for work in works):
        return None
    from tightship.engine.run.sized_steps import sized_steps

    return sized_steps(segments)


def _compiled(placement: Placement) -> Placement:
    steps = tuple(map(_taken_over, placement.lowered.steps))
    return placement._replace(lowered=placement.lowered._replace(steps=steps))


def _taken_over(step: LoweredStep) -> LoweredStep:
    if isinstance(step.work, KernelWork):
        return step._replace(work=step.work.ready())
    if not isinstance(step.work, NATIVE_WORK):
        return step
    return LoweredStep(
        step.name, step.operator, step.kernel, step.implementation, step.reads, step.writes,
        COMPILED, step.scratch_bytes, step.sharing, step.dynamic_reason,
    )  # fmt: skip


def _segments(
    placement: Placement, weights: Sequence[PackedCopy]
) -> tuple[NativeProgram | None, tuple[Segment, ...]]:
    places = _Places.of(placement.lowered, placement.schedule_plan, weights)
    native = NativeProgram()
    segments: list[Segment] = []
    frees = _last_object_reads(placement)
    for index, step in enumerate(placement.lowered.steps):
        work = step.work
        if isinstance(work, NATIVE_WORK):
            first = native.step_count
            _add_native(places, native, index, work)
            last = segments[-1] if segments else None
            if isinstance(last, NativeSegment):
                segments[-1] = NativeSegment(last.first, native.step_count)
            else:
                segments.append(NativeSegment(first, native.step_count))
        elif isinstance(work, KernelWork | ReferenceWork):
            taken = _taken_over(step)
            assert isinstance(taken.work, KernelWork | ReferenceWork)
            segments.append(PythonStep(index, taken, taken.work, frees.get(index, ())))
    return (native if native.step_count else None), tuple(segments)


def _last_object_reads(placement: Placement) -> dict[int, tuple[str, ...]]:
    """Map each step to the objects that no later step reads, except outputs."""
    last: dict[str, int] = {}
    for index, step in enumerate(placement.lowered.steps):
        for operand in (*step.reads, *step.writes):
            if operand.space is Space.OBJECT:
                last[operand.name] = index
    dying: dict[int, tuple[str, ...]] = {}
    for name, index in last.items():
        if name not in placement.lowered.outputs:
            dying[index] = (*dying.get(index, ()), name)
    return dying


def _add_native(
    places: "_Places",
    native: NativeProgram,
    index: int,
    work: PrimitiveWork | NativeWork | ControlWork,
) -> None:
    scratch = places.scratch[index]
    if isinstance(work, PrimitiveWork):
        _add_primitive(places, native, scratch, work)
        return
    operands = (*work.outputs, *work.inputs) if isinstance(work, ControlWork) else work.operands
    found = [places.first_element(operand) for operand in operands]
    if scratch is not None:
        found.append((0, scratch))
    if isinstance(work, ControlWork):
        add_control(native, work, found)
    else:
        native.add_kernel(work.kernel, found)


def _add_primitive(
    places: "_Places", native: NativeProgram, scratch: int | None, work: PrimitiveWork
) -> None:
    arguments = []
    for argument, operand in work.arguments:
        assert operand.desc is not None
        arguments.append((argument, operand.desc, places.place(operand)))
    if scratch is not None:
        desc = work.desc.operand(SCRATCHPAD)
        arguments.append((SCRATCHPAD, desc, (0, scratch)))
    native.add_primitive(work.desc, arguments)


def add_control(
    native: NativeProgram, work: ControlWork, operands: Sequence[tuple[int, int]]
) -> None:
    """Add bodies, whose operands lie in the scratch of the step or are operands of it."""
    for body in work.bodies:
        inner = native.add_body()
        places = _Places.of(body.lowered, body.plan, ())
        for index, step in enumerate(body.lowered.steps):
            assert isinstance(step.work, NATIVE_WORK), step
            _add_native(places, inner, index, step.work)
    run = work.iterations
    native.add_control(
        [body.bound for body in work.bodies],
        run.states,
        (run.read, run.written),
        run.kept,
        (run.most, run.count, run.condition, run.number_slot, run.goes_on_slot, run.next_slot,
         run.numbers, run.obeys),
        operands,
    )  # fmt: skip


class _Places(NamedTuple):
    """Space number and offset of operands in the native program.

    Weights lie in several blocks; their offsets count from the address of the first one.
    """

    scratch: tuple[int | None, ...]
    """Offset of each step's scratch in the arena."""
    slots: tuple[tuple[int, int], ...]
    weights: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, lowered: Lowered, plan: SchedulePlan, weights: Sequence[PackedCopy]) -> "_Places":
        base = _base(weights)
        return cls(
            tuple([plan.scratch_offset(index) for index in range(len(lowered.steps))]),
            tuple([
                (2 + index, 0) if slot.external else (0, plan.value_offset(index) or 0)
                for index, slot in enumerate(lowered.slots)
            ]),
            tuple([(1, copy.address - base) for copy in weights]),
        )  # fmt: skip

    def place(self, operand: Operand) -> tuple[int, int]:
        if operand.space is Space.WEIGHTS:
            return self.weights[operand.slot]
        space, offset = self.slots[operand.slot]
        return space, offset + operand.offset_bytes

    def first_element(self, operand: Operand) -> tuple[int, int]:
        """Locate an operand's first element, which a part of a larger value has at an offset."""
        space, offset = self.place(operand)
        return space, offset + (0 if operand.desc is None else operand.desc.offset_bytes)


def _base(weights: Sequence[PackedCopy]) -> int:
    """Return the address that offsets of weights count from."""
    return weights[0].address if weights else 0
