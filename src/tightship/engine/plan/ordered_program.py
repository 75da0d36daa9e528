"""Reorders the steps of a lowered training program, and writes updated weights in place.

All of it happens after lowering. Kernels and layouts stay what they were whatever the order and
whatever runs twice, and so does every bit of the results.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from tightship.engine.plan.placement import Placement, place
from tightship.engine.plan.step_operations import step_operations
from tightship.engine.program.part_order import with_parts_in_order
from tightship.engine.program.program import (
    ControlWork,
    KernelWork,
    Lowered,
    LoweredStep,
    NativeWork,
    Operand,
    PrimitiveWork,
    ReferenceWork,
    Sharing,
    Slot,
    Space,
    Work,
)
from tightship.engine.program.schedule import schedule_of
from tightship.graph.operators import find
from tightship.planner import AliasKind, Schedule, Step
from tightship.planner.recompute import NEVER
from tightship.planner.recompute_bound import least_bytes
from tightship.planner.squeeze import squeeze


@dataclass(frozen=True, slots=True)
class OrderedProgram:
    """Program placed in its final order.

    Attributes:
        placement: Offsets; slots of steps that run again follow the others.
        given_bytes: Arena size in the order given.
        added_share: Operations that are done again, as a share of all.
    """

    placement: Placement
    given_bytes: int
    added_share: float


def updating(lowered: Lowered, follows: Mapping[str, str], behind: Collection[str] = ()) -> Lowered:
    """Write some outputs over the inputs that they replace.

    Args:
        lowered: The program.
        follows: Name of the input, or of an output that itself replaces one, by output name.
        behind: Outputs that must exist before any input is overwritten, in every order, so that a
            run that fails before them has changed nothing.
    """
    operands = {**lowered.inputs, **lowered.outputs}
    over = {lowered.outputs[after].slot: operands[before].slot for after, before in follows.items()}
    tied = [_tied(step, over) for step in lowered.steps]
    gates = [lowered.outputs[name] for name in behind]
    return lowered._replace(steps=tuple(_gated(tied, over.keys(), gates)))


def _gated(
    steps: Sequence[LoweredStep], kept: Collection[int], gates: Sequence[Operand]
) -> list[LoweredStep]:
    """Have steps that write `kept` slots read the gates, and move them after the gates' writers.

    Steps that read their results move as well. If a gate is among these, no step moves.
    """
    missing = {operand.slot for operand in gates}
    found: list[LoweredStep] = []
    late: list[LoweredStep] = []
    made_late: set[int] = set()
    for step in steps:
        writes = {operand.slot for operand in step.writes}
        is_change = not writes.isdisjoint(kept)
        is_late = is_change or any(operand.slot in made_late for operand in step.reads)
        gated = step._replace(reads=(*step.reads, *gates)) if is_change else step
        if not missing or not is_late:
            found.append(gated)
            missing -= writes
        elif missing.isdisjoint(writes):
            late.append(gated)
            made_late |= writes
        else:
            return list(steps)
        if not missing:
            found.extend(late)
            late.clear()
    return found


def _tied(step: LoweredStep, over: Mapping[int, int]) -> LoweredStep:
    ties = [
        Sharing(operand.slot, over[operand.slot], AliasKind.TIED)
        for operand in step.writes
        if operand.space is Space.EXTERNAL and operand.slot in over
    ]
    assert {tie.input for tie in ties} <= {operand.slot for operand in step.reads}, step.name
    return step._replace(sharing=(*step.sharing, *ties)) if ties else step


def as_given(lowered: Lowered) -> OrderedProgram:
    """Place the program in its own order."""
    placement = place(lowered)
    return OrderedProgram(placement, placement.arena_bytes, 0.0)


def arranged(
    lowered: Lowered, *, budget_bytes: int | None = None, share: float = 0.0
) -> OrderedProgram:
    """Place the program in the order with the smallest arena, recomputing where allowed.

    Args:
        lowered: The program.
        budget_bytes: Arena size to reach; None for the smallest found.
        share: Operations that may be done again, as a share of all; infinite for any number.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can honour.
    """
    lowered = with_parts_in_order(lowered)
    schedule = schedule_of(lowered)
    operations = operations_of(lowered)
    total = sum(count for count in operations if count != NEVER)
    most = None if share == inf else int(share * total)
    found = squeeze(schedule, operations, budget_bytes=budget_bytes, operations_max=most)
    made = _rewritten(lowered, schedule, found.plan.schedule, found.origin)
    return OrderedProgram(
        place(made, found.plan), found.given_peak_bytes, found.added_operations / max(total, 1)
    )


def least_arena_bytes(lowered: Lowered) -> int:
    """Bound from below the arena of a program, in any order and however often its steps run."""
    return least_bytes(schedule_of(with_parts_in_order(lowered)))


def operations_of(lowered: Lowered) -> list[int]:
    """Estimate the operations of running each step again; NEVER for those that must not."""
    writers: dict[int, int] = {}
    for step in lowered.steps:
        for slot in dict.fromkeys(operand.slot for operand in step.writes):
            writers[slot] = writers.get(slot, 0) + 1
    return [NEVER if _runs_once(step, writers) else step_operations(step) for step in lowered.steps]


def _runs_once(step: LoweredStep, writers: Mapping[int, int]) -> bool:
    return (
        isinstance(step.work, ControlWork | ReferenceWork)
        or any(o.space is not Space.ARENA or writers[o.slot] > 1 for o in step.writes)
        or any(find(operator).is_random for operator in step.operator.split("+"))
    )


def _rewritten(
    lowered: Lowered, given: Schedule, found: Schedule, origin: tuple[int, ...]
) -> Lowered:
    """Order the steps as a schedule has them; `origin` gives each one's former index."""
    more = found.values[len(given.values) :]
    slots = (*lowered.slots, *(Slot(v.name, v.size_bytes, external=False) for v in more))
    steps = []
    for step, index in zip(found.steps, origin, strict=True):
        moved = _moved(given.steps[index], step)
        steps.append(_in_slots(lowered.steps[index], step.name, moved))
    return lowered._replace(steps=tuple(steps), slots=slots)


def _moved(given: Step, found: Step) -> dict[int, int]:
    """Map the former slots of a step to its new ones."""
    pairs = zip((*given.reads, *given.writes), (*found.reads, *found.writes), strict=True)
    return {before: after for before, after in pairs if before != after}


def _in_slots(step: LoweredStep, name: str, moved: Mapping[int, int]) -> LoweredStep:
    if not moved:
        return step

    def operand(given: Operand) -> Operand:
        if given.space is not Space.ARENA or given.slot not in moved:
            return given
        return given._replace(slot=moved[given.slot])

    def absent(given: Operand | None) -> Operand | None:
        return None if given is None else operand(given)

    def work(given: Work) -> Work:
        if isinstance(given, PrimitiveWork):
            return given._replace(arguments=tuple([(a, operand(o)) for a, o in given.arguments]))
        if isinstance(given, NativeWork):
            return given._replace(operands=tuple(map(operand, given.operands)))
        if isinstance(given, ControlWork):
            targets, sources = (tuple(map(operand, o)) for o in (given.outputs, given.inputs))
            return given._replace(outputs=targets, inputs=sources)
        assert isinstance(given, KernelWork | ReferenceWork)
        inputs, outputs = (tuple(map(absent, each)) for each in (given.inputs, given.outputs))
        return given._replace(inputs=inputs, outputs=outputs)

    return step._replace(
        name=name,
        reads=tuple(map(operand, step.reads)),
        writes=tuple(map(operand, step.writes)),
        work=work(step.work),
        sharing=tuple([
            s._replace(output=moved.get(s.output, s.output), input=moved.get(s.input, s.input))
            for s in step.sharing
        ]),
    )  # fmt: skip
