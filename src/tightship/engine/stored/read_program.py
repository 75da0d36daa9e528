"""Reads a program and its plan from JSON values of `write_program`, trusting none of them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args

import numpy as np

from tightship._core import MemoryDesc, NativeKernel, PrimitiveDesc
from tightship.engine.plan.placement import Placement
from tightship.engine.program.program import (
    ABSENT,
    COMPILED,
    Body,
    CarriedState,
    ControlWork,
    Iterations,
    KeptValue,
    KernelKind,
    Lowered,
    LoweredStep,
    NativeWork,
    Operand,
    PackedWeight,
    PrimitiveWork,
    Sharing,
    Slices,
    Slot,
    Space,
    Work,
)
from tightship.engine.program.schedule import ALIGNMENT, schedule_of
from tightship.engine.stored import fields
from tightship.engine.stored.fields import MalformedError
from tightship.graph import DType
from tightship.planner import Alias, AliasKind, Buffers, Plan, Problem, Schedule, SchedulePlan
from tightship.planner.plan import PlanStatus

KERNEL_KINDS: Mapping[str, KernelKind] = {kind: kind for kind in get_args(KernelKind)}
STATUSES: Mapping[str, PlanStatus] = {status: status for status in get_args(PlanStatus)}
DTYPES = {dtype.value: dtype for dtype in DType if dtype is not DType.STRING}
SPACES = {space.value: space for space in Space if space is not Space.OBJECT}
ALIASES = {kind.value: kind for kind in AliasKind}
AXES_MAX = 64
FAR = 1 << 62
"""More than any offset in bytes."""
ARGUMENT_MAX = 1 << 24
NO_SCHEDULE = Schedule((), ())


class Made(NamedTuple):
    """Objects that recipes described."""

    layouts: Sequence[MemoryDesc]
    primitives: Sequence[PrimitiveDesc]
    kernels: Sequence[NativeKernel]


class StoredProgram(NamedTuple):
    """Placed program, and the amounts stored with it."""

    placement: Placement
    strategies: Mapping[str, int]
    runtime_bytes: int


class _Context(NamedTuple):
    """Objects that the parts of a program refer to; `made` is None if only the plan is read."""

    made: Made | None
    slots: tuple[Slot, ...]
    weights: tuple[PackedWeight, ...]
    operands: tuple[Operand, ...]
    texts: dict[str, str]
    """Texts, each of which many parts have: one object is kept of equal ones."""
    shapes: dict[tuple[int, ...], tuple[int, ...]]
    """Shapes, likewise."""
    threads: int
    """Threads of each kernel."""

    def text(self, value: object) -> str:
        """Read a text."""
        found = fields.text(value)
        return self.texts.setdefault(found, found)

    def all_texts(self, values: Sequence[object]) -> list[str]:
        """Read texts."""
        return [self.texts.setdefault(each, each) for each in fields.each(values, fields.text)]

    def lengths(self, value: object) -> tuple[int, ...]:
        """Read a shape."""
        found = fields.integers(value)
        if len(found) > AXES_MAX:
            raise MalformedError(f"an operand has {len(found)} axes")
        return self.shapes.setdefault(found, found)


def read_program(
    value: object,
    made: Made | None,
    weights: Sequence[PackedWeight],
    counts: tuple[int, int],
    *,
    total: int,
    has_schedule: bool = True,
) -> StoredProgram:
    """Read a program; its steps have no work if `made` is None.

    Args:
        value: Result of `program_json`.
        made: Objects that the file's recipes describe.
        weights: The file's packed weights.
        counts: Threads of each kernel, and steps that run at once.
        total: Bytes of all packed weights.
        has_schedule: Whether the schedule is made, which rows of reports need, and is compared with
            the lives of buffers.

    Raises:
        MalformedError: `value` does not describe a program.
        PlanError: The plan is invalid.
    """
    inputs, outputs, layouts, slots, operands, steps, used, plan, strategies, runtime, chosen = (
        fields.record(
            value, "inputs", "outputs", "layouts", "slots", "operands", "steps", "weights", "plan",
            "strategies", "runtime_bytes", "concurrency",
        )
    )  # fmt: skip
    threads, workers = counts
    own = tuple([weights[place] for place in fields.indices(used, len(weights))])
    context = _Context(made, (), own, (), {}, {}, threads)
    context = context._replace(slots=_slots(slots, context))
    context = context._replace(operands=_all_operands(operands, context))
    lowered = Lowered(
        _steps(steps, context),
        context.slots,
        own,
        _ports(inputs, context),
        _ports(outputs, context),
        {},
        threads,
        fields.text(layouts),
        workers,
    )
    ports = [port.slot for port in (*lowered.inputs.values(), *lowered.outputs.values())]
    external = [index for index, slot in enumerate(context.slots) if slot.external]
    if sorted(ports) != external:
        raise MalformedError("its inputs and outputs are not what its caller has")
    placed = _schedule_plan(lowered, plan, context, has_schedule=has_schedule)
    concurrency = None
    if chosen is not None or workers > 1:
        from tightship.engine.stored.concurrency import concurrency_of  # few are for several

        concurrency = concurrency_of(chosen, workers, len(lowered.steps))
    placement = Placement(lowered, placed, (0,) * len(own), total, concurrency)
    return StoredProgram(placement, fields.amounts(strategies), fields.integer(runtime))


def _slots(value: object, context: _Context) -> tuple[Slot, ...]:
    names, sizes, external = fields.columns(value, 3)
    flags = fields.each(external, fields.flag)
    return tuple(map(Slot, context.all_texts(names), fields.integers(sizes), flags))


def _named(value: object, table: Mapping[str, fields.Value]) -> fields.Value:
    found = table.get(value) if type(value) is str else None
    if found is None:
        raise MalformedError(f"`{fields.text(value):.40}` names nothing here")
    return found


def _all_named(values: Sequence[object], table: Mapping[str, fields.Value]) -> list[fields.Value]:
    try:
        return [table[each] for each in values]  # type: ignore[index]  # texts, where it is whole
    except (KeyError, TypeError):
        return [_named(each, table) for each in values]


def _all_operands(value: object, context: _Context) -> tuple[Operand, ...]:
    """Read the operands, column by column: hundreds are read before a first token."""
    names, spaces, slots, dtypes, shapes, layouts, offsets = fields.columns(value, 7)
    lie = _all_named(spaces, SPACES)
    for place, (lies, slot) in enumerate(zip(lie, slots, strict=True)):
        if lies is Space.WEIGHTS:
            fields.index(slot, len(context.weights))
        elif context.slots[fields.index(slot, len(context.slots))].external != (
            lies is Space.EXTERNAL
        ):
            raise MalformedError(f"operand {place} in slot {slot} is elsewhere than its slot")
    return tuple(map(
        Operand, context.all_texts(names), lie, fields.integers(slots),
        _all_named(dtypes, DTYPES), map(context.lengths, shapes), _layouts(layouts, context.made),
        fields.integers(offsets),
    ))  # fmt: skip


def _layouts(values: list[object], made: Made | None) -> list[MemoryDesc | None]:
    if made is None:
        return [None] * len(values)
    places = fields.integers(values, -1, len(made.layouts) - 1)
    return [None if place < 0 else made.layouts[place] for place in places]


def _ports(value: object, context: _Context) -> dict[str, Operand]:
    ports: dict[str, Operand] = {}
    for row in fields.items(value):
        name, place = fields.items(row, 2)
        operand = context.operands[fields.index(place, len(context.operands))]
        slot = context.slots[operand.slot] if operand.space is Space.EXTERNAL else None
        room = operand._replace(desc=None).size_bytes
        if slot is None or slot.size_bytes != room or operand.offset_bytes:
            raise MalformedError(f"input or output `{fields.text(name):.40}` is not the caller's")
        ports[fields.text(name)] = operand
    return ports


def _steps(value: object, context: _Context) -> tuple[LoweredStep, ...]:
    names, operators, kernels, implementations, reads, writes, works, scratch, sharing = (
        fields.columns(value, 9)
    )
    called = context.all_texts(names)
    return tuple(map(
        LoweredStep, called, context.all_texts(operators), _all_named(kernels, KERNEL_KINDS),
        context.all_texts(implementations), [_operands(row, context) for row in reads],
        [_operands(row, context) for row in writes],
        [_work(name, work, context) for name, work in zip(called, works, strict=True)],
        fields.integers(scratch),
        [tuple([_sharing(each, context) for each in fields.items(row)]) for row in sharing],
    ))  # fmt: skip


def _operands(value: object, context: _Context) -> tuple[Operand, ...]:
    places = fields.indices(value, len(context.operands))
    return tuple([context.operands[place] for place in places])


def _optional(value: object, context: _Context) -> list[Operand | None]:
    """Look up operands by index; None for one that is left out."""
    places = fields.integers(value, -1, len(context.operands) - 1)
    return [None if place < 0 else context.operands[place] for place in places]


def _sharing(value: object, context: _Context) -> Sharing:
    output, source, kind = fields.items(value, 3)
    count = len(context.slots)
    return Sharing(fields.index(output, count), fields.index(source, count), _named(kind, ALIASES))


def _work(name: str, value: object, context: _Context) -> Work:
    kind, which, places = fields.items(value, 3)
    made = context.made
    if made is None:
        return COMPILED
    if kind == "kernel":
        kernel = made.kernels[fields.index(which, len(made.kernels))]
        return NativeWork(kernel, _operands(places, context))
    if kind == "numpy":
        from tightship.engine.stored.numpy_kernel import numpy_work  # few need it

        inputs, outputs = [_optional(row, context) for row in fields.items(places, 2)]
        return numpy_work(name, which, inputs, outputs)
    if kind == "control":
        bodies, row = fields.items(which, 2)
        made_bodies = tuple([_body(body, context) for body in fields.items(bodies)])
        targets, sources = (_operands(each, context) for each in fields.items(places, 2))
        return ControlWork(made_bodies, _iterations(row), targets, sources)
    if kind != "primitive":
        raise MalformedError("a step has work of no known kind")
    arguments = []
    for row in fields.items(places):
        number, place = fields.items(row, 2)
        operand = context.operands[fields.index(place, len(context.operands))]
        if operand.desc is None:
            raise MalformedError("an operand of a primitive has no layout")
        arguments.append((fields.integer(number, 1, ARGUMENT_MAX), operand))
    return PrimitiveWork(
        made.primitives[fields.index(which, len(made.primitives))], tuple(arguments)
    )


def _body(value: object, around: _Context) -> Body:
    """Read a body of control flow."""
    slots, operands, steps, plan, bound = fields.record(
        value, "slots", "operands", "steps", "plan", "bound"
    )
    read = _slots(slots, around)
    context = around._replace(slots=read, weights=(), operands=())
    context = context._replace(operands=_all_operands(operands, context))
    lowered = Lowered(
        _steps(steps, context),
        read, (), {}, {}, {}, around.threads,
    )  # fmt: skip
    pairs = [fields.integers(pair) for pair in fields.items(bound)]
    if any(len(pair) != 2 for pair in pairs):
        raise MalformedError("a body is bound to something else than pairs")
    bindings = tuple([(slot, operand) for slot, operand in pairs])
    return Body(lowered, _schedule_plan(lowered, plan, context), bindings)


def _iterations(value: object) -> Iterations:
    states, read, written, kept, *numbers, obeys = fields.items(value, 12)
    most, count, condition, number, goes_on, following, offset = fields.integers(numbers, ABSENT)
    return Iterations(
        tuple([CarriedState(*_row(row, 6)) for row in fields.items(states)]),
        tuple([Slices(*_row(row, 8)) for row in fields.items(read)]),
        tuple([Slices(*_row(row, 8)) for row in fields.items(written)]),
        tuple([KeptValue(*_row(row, 3)) for row in fields.items(kept)]),
        most, count, condition, number, goes_on, following, offset, fields.flag(obeys),
    )  # fmt: skip


def _row(value: object, count: int) -> tuple[int, ...]:
    return fields.integers(fields.items(value, count), -FAR, FAR)


def _schedule_plan(
    lowered: Lowered, value: object, context: _Context, *, has_schedule: bool = True
) -> SchedulePlan:
    (size, start, stop, alignment, names, offset, strategy, bound, status, of_value, of_scratch,
     in_place, parts, inside) = fields.record(
        value, "size", "start", "stop", "alignment", "names", "offset", "strategy", "lower_bound",
        "status", "of_value", "of_scratch", "in_place", "parts", "inside",
    )  # fmt: skip
    problem = Problem(
        _column(size), _column(start), _column(stop), _column(alignment),
        fields.each(names, context.text),
    )  # fmt: skip
    offsets = _column(offset)
    if len(offsets) != problem.count or (offsets % ALIGNMENT).any():
        raise MalformedError("a plan does not have an aligned offset for each buffer")
    values = fields.integers(of_value, -1, problem.count - 1)
    scratch = fields.integers(of_scratch, -1, problem.count - 1)
    if len(values) != len(lowered.slots) or len(scratch) != len(lowered.steps):
        raise MalformedError("a plan does not have a buffer for each value and step")
    buffers = Buffers(
        problem, values, scratch,
        tuple([_alias(alias, len(values)) for alias in fields.items(in_place)]),
        tuple([_alias(alias, len(values)) for alias in fields.items(parts)]),
        dict([_inside(row, len(values)) for row in fields.items(inside)]),
    )  # fmt: skip
    schedule = schedule_of(lowered) if has_schedule else NO_SCHEDULE
    if has_schedule:
        _check_lifetimes(schedule, buffers)
    plan = Plan(problem, offsets, fields.text(strategy), fields.integer(bound),
                _named(status, STATUSES))  # fmt: skip
    return SchedulePlan(schedule, buffers, plan)


def _check_lifetimes(schedule: Schedule, buffers: Buffers) -> None:
    """Check that buffers are live whenever a step uses them, and large enough for their values."""
    start, stop = buffers.problem.start_step.tolist(), buffers.problem.stop_step.tolist()
    size = buffers.problem.size_bytes.tolist()
    written = {value for step in schedule.steps for value in step.writes}
    for value, buffer in enumerate(buffers.of_value):
        end = buffers.inside.get(value, 0) + schedule.values[value].size_bytes
        if buffer >= 0 and (value not in written or end > size[buffer]):
            raise MalformedError(f"value {value} has a buffer that cannot be its own")
    for index, step in enumerate(schedule.steps):
        used = {buffers.of_value[value] for value in (*step.reads, *step.writes)}
        for buffer in {buffers.of_scratch[index], *used} - {-1}:
            if not start[buffer] <= index < stop[buffer]:
                raise MalformedError(f"step {index} uses a buffer before or after its life")


def _column(value: object) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(fields.integers(value), np.int64)


def _alias(value: object, count: int) -> Alias:
    output, source, kind, offset = fields.items(value, 4)
    return Alias(
        fields.index(output, count), fields.index(source, count), _named(kind, ALIASES),
        fields.integer(offset),
    )  # fmt: skip


def _inside(value: object, count: int) -> tuple[int, int]:
    slot, offset = fields.items(value, 2)
    return fields.index(slot, count), fields.integer(offset)
