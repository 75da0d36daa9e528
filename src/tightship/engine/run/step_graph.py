"""Dependencies between the native steps of a program, so that independent ones may run at once."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tightship._core import NativeStepGraph, needed_edges
from tightship.engine.plan.placement import Placement
from tightship.engine.plan.step_operations import step_operations
from tightship.engine.program.program import CompiledWork, LoweredStep, Operand, Space
from tightship.engine.run.executable import Executable, NativeSegment
from tightship.planner.parallel.makespan import urgent_first
from tightship.planner.schedule import AliasKind

Edge = tuple[int, int]


@dataclass(slots=True)
class _Room:
    """Slot or scratch in the arena, and the steps that have touched it so far.

    Steps that each write a part of it do not wait for each other.
    """

    start: int
    stop: int
    after: tuple[int, ...]
    """Steps that touched these bytes when other values had them."""
    writers: list[int] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)


def step_graphs(executable: Executable) -> dict[NativeSegment, NativeStepGraph]:
    """Return the minimal dependencies between the steps of each native segment.

    A step waits for the steps that write what it reads, and for those that touch bytes which it
    overwrites, because values reuse bytes of the arena. A Python step waits for all before it. Of
    steps that are ready, that goes first which the most operations wait for.
    """
    steps = executable.placement.lowered.steps
    edges = needed(executable.placement)
    native_of: dict[int, int] = {}
    for index, step in enumerate(steps):
        if isinstance(step.work, CompiledWork):
            native_of[index] = len(native_of)
    inner = [(native_of[a], native_of[b]) for a, b in edges if a in native_of and b in native_of]
    urgent = urgent_first([step_operations(step) for step in steps], edges)
    order = [native_of[index] for index in urgent if index in native_of]
    return {
        segment: NativeStepGraph(
            segment.first,
            segment.last,
            [edge for edge in inner if segment.first <= edge[0] and edge[1] < segment.last],
            [step - segment.first for step in order if segment.first <= step < segment.last],
        )
        for segment in executable.segments
        if isinstance(segment, NativeSegment)
    }


def needed(placement: Placement) -> list[Edge]:
    """Find the fewest edges between steps that keep values and bytes in order."""
    edges = sorted(set(_edges(placement)))
    rows = np.ascontiguousarray(np.array(edges, np.int64).reshape(-1, 2).T)
    nothing = np.zeros((2, 0), np.int64)
    kept = needed_edges(len(placement.lowered.steps), nothing, rows)
    return [edges[index] for index in kept.tolist()]


def _edges(placement: Placement) -> Iterator[Edge]:
    over = _written_over(placement)
    backings = {(Space.EXTERNAL, slot): _Room(0, 0, ()) for slot in over.values()}
    inside: list[_Room] = []

    def key(operand: Operand) -> tuple[Space, int]:
        return operand.space, over.get(operand.slot, operand.slot)

    for index, step in enumerate(placement.lowered.steps):
        for operand in step.reads:
            room = backings.get(key(operand))
            if room is not None:
                yield from ((before, index) for before in room.writers)
                room.readers.append(index)
        for operand in step.writes:
            room = backings.get(key(operand))
            if room is None:
                room = backings[key(operand)] = _entered(placement, operand, inside)
            waits = (*room.after, *room.readers)
            yield from ((before, index) for before in waits if before != index)
            room.writers.append(index)
        scratch = _scratch(placement, index, step, inside)
        if scratch is not None:
            yield from ((before, index) for before in scratch.after if before != index)
            scratch.writers.append(index)


def _written_over(placement: Placement) -> dict[int, int]:
    """Map the slots of outputs that overwrite inputs, as updated weights do, to the inputs' slots.

    Tiles of an update map to the slot of the first of them.
    """
    slots = placement.lowered.slots
    found: dict[int, int] = {}
    for step in placement.lowered.steps:
        for sharing in step.sharing:
            if sharing.kind is AliasKind.TIED and slots[sharing.input].external:
                found[sharing.output] = found.get(sharing.input, sharing.input)
    return found


def _entered(placement: Placement, operand: Operand, inside: list[_Room]) -> _Room:
    """Return the room of a slot that is written for the first time."""
    if operand.space is not Space.ARENA:
        return _Room(0, 0, ())
    start = placement.schedule_plan.value_offset(operand.slot) or 0
    return _taken(start, placement.lowered.slots[operand.slot].size_bytes, inside)


def _scratch(
    placement: Placement, index: int, step: LoweredStep, inside: list[_Room]
) -> _Room | None:
    start = placement.schedule_plan.scratch_offset(index)
    return None if start is None else _taken(start, step.scratch_bytes, inside)


def _taken(start: int, size_bytes: int, inside: list[_Room]) -> _Room:
    """Give bytes of the arena to a new room, which waits for users of those it overlaps."""
    stop = start + size_bytes
    former = [room for room in inside if room.start < stop and start < room.stop]
    after = {step for room in former for step in (*room.writers, *room.readers)}
    room = _Room(start, stop, tuple(sorted(after)))
    inside.append(room)
    return room
