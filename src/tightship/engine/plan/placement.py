"""Places a lowered program: offsets of its slots, scratch and weights.

The planner is imported on use, because a prepared model comes with its plan.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from tightship.brief import Rows
from tightship.engine.plan.memory_plan import (
    MemoryPlan,
    PlannedStep,
    PlannedTensor,
    PlannedWeight,
)
from tightship.engine.program.program import Lowered, Operand, Space
from tightship.engine.program.schedule import ALIGNMENT, schedule_of
from tightship.planner import AliasKind, SchedulePlan

if TYPE_CHECKING:
    from tightship.planner.parallel.concurrency import Concurrency


class Placement(NamedTuple):
    """Offsets of slots and scratch in the arena, and of weights in the weights' block."""

    lowered: Lowered
    schedule_plan: SchedulePlan
    weight_offsets: tuple[int, ...]
    weights_bytes: int
    concurrency: "Concurrency | None" = None
    """Plans that this one was chosen from, if it is for several workers."""

    @property
    def arena_bytes(self) -> int:
        """Size of the arena."""
        return self.schedule_plan.plan.peak_bytes

    @property
    def io_bytes(self) -> int:
        """Bytes of inputs and outputs, which lie in the caller's memory."""
        return sum(slot.size_bytes for slot in self.lowered.slots if slot.external)

    def offset_of(self, operand: Operand) -> int:
        """Return the offset in bytes from the base of the operand's space."""
        if operand.space is Space.WEIGHTS:
            return self.weight_offsets[operand.slot]
        if operand.space is Space.EXTERNAL:
            return 0
        return (self.schedule_plan.value_offset(operand.slot) or 0) + operand.offset_bytes


def place(
    lowered: Lowered, plan: SchedulePlan | None = None, concurrency: "Concurrency | None" = None
) -> Placement:
    """Plan the arena, unless a plan is given, and lay out the weights one after another."""
    from tightship.planner import place_schedule

    offsets: list[int] = []
    end = 0
    for weight in lowered.weights:
        offsets.append(end)
        end += -(-weight.size_bytes // ALIGNMENT) * ALIGNMENT
    placed = plan or place_schedule(schedule_of(lowered))
    return Placement(lowered, placed, tuple(offsets), end, concurrency)


def memory_plan(placement: Placement, model: str, runtime_bytes: int, key: dict[str, str],
                strategies: Mapping[str, int] | None = None, *,
                has_rows: bool = True) -> MemoryPlan:  # fmt: skip
    """Report a placement: totals, strategies (compared unless given), and rows of its parts."""
    lowered, plan = placement.lowered, placement.schedule_plan.plan
    if strategies is None:
        from tightship.planner import compare

        strategies = compare(placement.schedule_plan.schedule)
        del strategies["lower_bound"]
    return MemoryPlan(
        model=model,
        weights_bytes=placement.weights_bytes,
        arena=plan,
        io_bytes=placement.io_bytes,
        runtime_bytes=runtime_bytes,
        strategies=strategies,
        steps=Rows(_planned_steps(placement) if has_rows else ()),
        tensors=Rows(_planned_tensors(placement) if has_rows else ()),
        key=key,
        inputs={name: _described(operand) for name, operand in lowered.inputs.items()},
        outputs={name: _described(operand) for name, operand in lowered.outputs.items()},
        weights=Rows(_planned_weights(lowered) if has_rows else ()),
        concurrency=placement.concurrency,
    )


def _described(operand: Operand) -> str:
    if operand.space is Space.OBJECT:
        return "dynamic"
    shape = "x".join(str(dimension) for dimension in operand.shape) or "scalar"
    return f"{shape} {operand.dtype.value}"


def _planned_weights(lowered: Lowered) -> list[PlannedWeight]:
    types = _types_of_slots(lowered, Space.WEIGHTS)
    readers: dict[int, int] = {}
    for index, step in enumerate(lowered.steps):
        for operand in step.reads:
            if operand.space is Space.WEIGHTS:
                readers.setdefault(operand.slot, index)
    return [
        PlannedWeight(weight.name, weight.size_bytes, types.get(index, ""), readers.get(index, -1))
        for index, weight in enumerate(lowered.weights)
    ]


def _types_of_slots(lowered: Lowered, space: Space) -> dict[int, str]:
    """Return shape and type by slot: those of the largest operand, as parts of it are smaller."""
    largest: dict[int, Operand] = {}
    for step in lowered.steps:
        for operand in (*step.writes, *step.reads):
            if operand.space is space:
                other = largest.setdefault(operand.slot, operand)
                if operand.size_bytes > other.size_bytes:
                    largest[operand.slot] = operand
    texts: dict[tuple[object, ...], str] = {}  # a text for each type, however many slots have it
    return {
        slot: texts.setdefault((operand.dtype, operand.shape), _described(operand))
        for slot, operand in largest.items()
    }


def _planned_steps(placement: Placement) -> list[PlannedStep]:
    load = placement.schedule_plan.plan.problem.live_bytes(len(placement.lowered.steps))
    return [
        PlannedStep(
            step.name,
            step.operator,
            step.kernel,
            step.implementation,
            int(load[index]),
            step.dynamic_reason,
            _values(placement.lowered, step.reads),
            _values(placement.lowered, step.writes),
        )
        for index, step in enumerate(placement.lowered.steps)
    ]


def _values(lowered: Lowered, operands: tuple[Operand, ...]) -> tuple[str, ...]:
    """Return the names of slots and objects among operands, each once."""
    return tuple(dict.fromkeys([
        operand.name if operand.space is Space.OBJECT else lowered.slots[operand.slot].name
        for operand in operands
        if operand.space is not Space.WEIGHTS
    ]))  # fmt: skip


def _planned_tensors(placement: Placement) -> list[PlannedTensor]:
    schedule_plan = placement.schedule_plan
    born = {slot: i for i, step in enumerate(schedule_plan.schedule.steps) for slot in step.writes}
    died = {slot: i + 1 for i, s in enumerate(schedule_plan.schedule.steps) for slot in s.reads}
    taken = {(alias.output, alias.input) for alias in schedule_plan.buffers.in_place}
    host = {
        sharing.output: placement.lowered.slots[sharing.input].name
        for step in placement.lowered.steps
        for sharing in step.sharing
        if sharing.kind is AliasKind.TIED or (sharing.output, sharing.input) in taken
    }
    types = _types_of_slots(placement.lowered, Space.ARENA)
    tensors = []
    for index, slot in enumerate(placement.lowered.slots):
        offset = schedule_plan.value_offset(index)
        if offset is not None:
            stop = max(died.get(index, 0), born[index] + 1)
            tensors.append(
                PlannedTensor(slot.name, "activation", slot.size_bytes, offset, born[index], stop,
                              host.get(index), types.get(index, ""))
            )  # fmt: skip
    for index, step in enumerate(placement.lowered.steps):
        offset = schedule_plan.scratch_offset(index)
        if offset is not None:
            tensors.append(
                PlannedTensor(f"{step.name}.scratch", "scratch", step.scratch_bytes, offset,
                              index, index + 1)
            )  # fmt: skip
    return tensors
