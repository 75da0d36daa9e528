"""A placement made ready to run: weights packed, primitives compiled, steps in segments."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship._core import HostBlock, NativeProgram
from tightship.engine.library import release_library_code
from tightship.engine.pack import Packer, staging_bytes
from tightship.engine.placement import Placement
from tightship.engine.program import (
    KernelWork,
    LoweredStep,
    NativeWork,
    Operand,
    PrimitiveWork,
    ReferenceWork,
    Space,
)
from tightship.errors import OutOfMemoryError
from tightship.resource import HostResource

SCRATCHPAD = 80

Progress = Callable[[int, int], None]
"""Called with bytes of weights packed, and of all weights."""


@dataclass(frozen=True, slots=True)
class NativeSegment:
    """Steps [first, last) of the native program, run in one call."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class PythonStep:
    """A step that runs in Python; `index` is its place among the lowered steps."""

    index: int
    step: LoweredStep
    work: KernelWork | ReferenceWork
    frees: tuple[str, ...] = ()
    """Objects that nobody reads later."""


Segment = NativeSegment | PythonStep


@dataclass(frozen=True, slots=True)
class Executable:
    """Immutable; runs in any number of threads, each with an arena of its own."""

    placement: Placement
    weights: HostBlock
    native: NativeProgram | None
    segments: tuple[Segment, ...]


def build(
    placement: Placement, resource: HostResource, progress: Progress | None = None
) -> Executable:
    """Pack the weights and compile the primitives.

    Raises:
        OutOfMemoryError: The weights cannot be allocated.
    """
    release_library_code()
    weights = allocate(resource, placement.weights_bytes, "the weights")
    needed = staging_bytes(placement.lowered.weights)
    staging = allocate(resource, needed, "a piece of a weight while it is packed")
    _pack_all(placement, weights.array(), staging.array()[:needed], progress)
    del staging
    native, segments = _segments(placement)
    if native is not None:
        native.compile(placement.lowered.threads)
        native.bind_weights(weights.address)
        release_library_code()
    return Executable(placement, weights, native, segments)


def allocate(resource: HostResource, size_bytes: int, what: str) -> HostBlock:
    """A block from `resource`.

    Raises:
        OutOfMemoryError: The system refuses.
    """
    try:
        return resource.allocate(size_bytes)
    except MemoryError:
        raise OutOfMemoryError(
            f"Cannot allocate {size_bytes} bytes for {what}: the system refuses. "
            "Lower the batch, or raise the process's memory limit.",
            requested_bytes=size_bytes,
        ) from None


def _pack_all(
    placement: Placement,
    room: NDArray[np.uint8],
    staging: NDArray[np.uint8],
    progress: Progress | None,
) -> None:
    """Largest first: what a constant takes besides its packed copy meets the fewest others."""
    weights = placement.lowered.weights
    packer = Packer(staging)
    order = sorted(range(len(weights)), key=lambda index: -weights[index].size_bytes)
    done, total = 0, sum(weight.size_bytes for weight in weights)
    for index in order:
        offset, size = placement.weight_offsets[index], weights[index].size_bytes
        packer.pack(weights[index], room[offset : offset + size])
        done += size
        if progress is not None:
            progress(done, total)


def _segments(placement: Placement) -> tuple[NativeProgram | None, tuple[Segment, ...]]:
    native = NativeProgram()
    segments: list[Segment] = []
    frees = _last_object_reads(placement)
    for index, step in enumerate(placement.lowered.steps):
        work = step.work
        if isinstance(work, PrimitiveWork | NativeWork):
            first = native.step_count
            _add_native(placement, native, index, work)
            last = segments[-1] if segments else None
            if isinstance(last, NativeSegment):
                segments[-1] = NativeSegment(last.first, native.step_count)
            else:
                segments.append(NativeSegment(first, native.step_count))
        else:
            segments.append(PythonStep(index, step, work, frees.get(index, ())))
    return (native if native.step_count else None), tuple(segments)


def _last_object_reads(placement: Placement) -> dict[int, tuple[str, ...]]:
    """Names of the objects that die at each step; outputs live on."""
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
    placement: Placement, native: NativeProgram, index: int, work: PrimitiveWork | NativeWork
) -> None:
    scratch = placement.schedule_plan.scratch_offset(index)
    if isinstance(work, NativeWork):
        places = [_first_element(placement, operand) for operand in work.operands]
        if scratch is not None:
            places.append((0, scratch))
        native.add_kernel(work.kernel, places)
        return
    arguments = []
    for argument, operand in work.arguments:
        assert operand.desc is not None
        arguments.append((argument, native.operand(operand.desc, _place(placement, operand))))
    if scratch is not None:
        desc = work.desc.operand(SCRATCHPAD)
        arguments.append((SCRATCHPAD, native.operand(desc, (0, scratch))))
    native.add_primitive(work.desc, arguments)


def _first_element(placement: Placement, operand: Operand) -> tuple[int, int]:
    """Place of an operand's first element, which a part of another has further on."""
    space, offset = _place(placement, operand)
    return space, offset + (0 if operand.desc is None else operand.desc.offset_bytes)


def _place(placement: Placement, operand: Operand) -> tuple[int, int]:
    """Space and offset, as the native program counts them."""
    if operand.space is Space.ARENA:
        return 0, placement.offset_of(operand)
    if operand.space is Space.WEIGHTS:
        return 1, placement.offset_of(operand)
    return 2 + operand.index, 0
