"""Derives which steps of a placed program wait for each other."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tightship.engine.plan.placement import Placement
from tightship.engine.program.program import (
    KernelWork,
    Lowered,
    LoweredStep,
    Operand,
    ReferenceWork,
    Space,
)
from tightship.planner.parallel.dependencies import Edge, fewest_edges
from tightship.planner.schedule import AliasKind
from tightship.planner.schedule_plan import SchedulePlan


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


def needed(placement: Placement) -> list[Edge]:
    """Find the fewest edges between steps that keep values and bytes in order."""
    return waits_of(placement.lowered, placement.schedule_plan)


def waits_of(lowered: Lowered, plan: SchedulePlan | None) -> list[Edge]:
    """Find the fewest edges that keep values in order, and with a plan also bytes.

    Steps in Python wait for all steps before them, and all after them wait for these.
    """
    return fewest_edges(len(lowered.steps), sorted({*_edges(lowered, plan), *_alone(lowered)}))


def _edges(lowered: Lowered, plan: SchedulePlan | None) -> Iterator[Edge]:
    over = _written_over(lowered)
    backings = {(Space.EXTERNAL, slot): _Room(0, 0, ()) for slot in over.values()}
    inside: list[_Room] = []

    def key(operand: Operand) -> tuple[Space, int]:
        return operand.space, over.get(operand.slot, operand.slot)

    for index, step in enumerate(lowered.steps):
        for operand in step.reads:
            room = backings.get(key(operand))
            if room is not None:
                yield from ((before, index) for before in room.writers)
                room.readers.append(index)
        for operand in step.writes:
            room = backings.get(key(operand))
            if room is None:
                room = backings[key(operand)] = _entered(lowered, plan, operand, inside)
            waits = (*room.after, *room.readers)
            yield from ((before, index) for before in waits if before != index)
            room.writers.append(index)
        scratch = _scratch(plan, index, step, inside)
        if scratch is not None:
            yield from ((before, index) for before in scratch.after if before != index)
            scratch.writers.append(index)


def _written_over(lowered: Lowered) -> dict[int, int]:
    """Map the slots of outputs that overwrite inputs, as updated weights do, to the inputs' slots.

    Tiles of an update map to the slot of the first of them.
    """
    slots = lowered.slots
    found: dict[int, int] = {}
    for step in lowered.steps:
        for sharing in step.sharing:
            if sharing.kind is AliasKind.TIED and slots[sharing.input].external:
                found[sharing.output] = found.get(sharing.input, sharing.input)
    return found


def _entered(
    lowered: Lowered, plan: SchedulePlan | None, operand: Operand, inside: list[_Room]
) -> _Room:
    """Return the room of a slot that is written for the first time."""
    if operand.space is not Space.ARENA or plan is None:
        return _Room(0, 0, ())
    start = plan.value_offset(operand.slot) or 0
    return _taken(start, lowered.slots[operand.slot].size_bytes, inside)


def _scratch(
    plan: SchedulePlan | None, index: int, step: LoweredStep, inside: list[_Room]
) -> _Room | None:
    start = None if plan is None else plan.scratch_offset(index)
    return None if start is None else _taken(start, step.scratch_bytes, inside)


def _taken(start: int, size_bytes: int, inside: list[_Room]) -> _Room:
    """Give bytes of the arena to a new room, which waits for users of those it overlaps."""
    stop = start + size_bytes
    former = [room for room in inside if room.start < stop and start < room.stop]
    after = {step for room in former for step in (*room.writers, *room.readers)}
    room = _Room(start, stop, tuple(sorted(after)))
    inside.append(room)
    return room


def _alone(lowered: Lowered) -> Iterator[Edge]:
    """Yield the waits of steps in Python: for all steps before them, as these wait for them."""
    alone = [
        index
        for index, step in enumerate(lowered.steps)
        if isinstance(step.work, KernelWork | ReferenceWork)
    ]
    starts, ends = [-1, *alone], [*alone, len(lowered.steps)]
    for start, end in zip(starts, ends, strict=True):
        for index in range(start + 1, end):
            if start >= 0:
                yield start, index
            if end < len(lowered.steps):
                yield index, end
        if start >= 0 and end == start + 1 < len(lowered.steps):
            yield start, end
