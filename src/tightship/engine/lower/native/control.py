"""Emits If, Loop and Scan whose bodies run as native programs in the scratch of their step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tightship.engine.kernels.kernel_context import require
from tightship.engine.lower.native.body import (
    LoweredBody,
    Operands,
    bound_body,
    lower_body,
    source_of,
    updating,
    value_of,
)
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.program.program import (
    ABSENT,
    Body,
    CarriedState,
    ControlWork,
    Iterations,
    KeptValue,
    Operand,
    Slices,
)
from tightship.engine.program.schedule import ALIGNMENT
from tightship.graph import DType, Graph, Node, Value, element_count
from tightship.graph.loop_trips import trip_count

_UNBATCHED_SCAN_VERSION = 9
"""Opset from which Scan has no batch axis."""
_NUMBERS_BYTES = 16
"""Bytes of an iteration's number and two truth values."""
_NO_NUMBERS = (ABSENT, ABSENT)


@dataclass(frozen=True, slots=True)
class _Part:
    """Value around a loop, of which the body has a slice along an axis, from either end."""

    outer: str
    inner: str
    axis: int = 0
    is_backward: bool = False


@dataclass(frozen=True, slots=True)
class _Form:
    """Loop in terms of its body's values.

    Attributes:
        body: The body.
        states: Initial value, input, result, and output around the loop of each state.
        read: Values that are read slice by slice.
        written: Values that are written slice by slice.
        next_result: Result of the body that may end the loop, or `""`.
        numbers: Inputs of the body for the iteration's number and the condition, if it has them.
        count: Value of the most iterations that only the run knows, or `""`.
        condition: Value of the first condition, or `""`.
        most: Most iterations that are known before, or ABSENT.
    """

    body: Graph
    states: tuple[tuple[str, str, str, str], ...]
    read: tuple[_Part, ...] = ()
    written: tuple[_Part, ...] = ()
    next_result: str = ""
    numbers: tuple[str, ...] = ()
    count: str = ""
    condition: str = ""
    most: int = ABSENT

    @property
    def changing(self) -> list[tuple[str, str, str, str]]:
        """States that an iteration may change."""
        return [each for each in self.states if source_of(self.body, each[2]) != each[1]]


def choice(builder: Builder, node: Node) -> None:
    """Emit an If, both of whose branches write its outputs directly."""
    branches = [_graph(node, name) for name in ("else_branch", "then_branch")]
    _require_one(builder.value(node.inputs[0]), DType.BOOL)
    given = [index for index, name in enumerate(node.outputs) if name]
    for branch in branches:
        for index in given:
            value = value_of(builder, branch, branch.outputs[index])
            _require_like(value, builder.value(node.outputs[index]))
    made = [
        lower_body(builder, node, branch, [branch.outputs[index] for index in given])
        for branch in branches
    ]
    operands = Operands(tuple([builder.output(node.outputs[index]) for index in given]), [])
    condition = operands.read(builder.dense(node.inputs[0]))
    bodies = []
    for each in made:
        bound = _captured(builder, each) | dict(zip(each.results, operands.outputs, strict=True))
        bodies.append(bound_body(builder, each, operands, bound))
    arena = max(body.plan.plan.peak_bytes for body in bodies)
    _emit(builder, node, operands, tuple(bodies), Iterations(condition=condition), arena)


def loop(builder: Builder, node: Node) -> None:
    """Emit a Loop; one that stacks elements is counted before the run."""
    body = _graph(node, "body")
    count, condition = node.inputs[:2]
    if count:
        _require_one(builder.value(count), DType.INT64)
    if condition:
        _require_one(builder.value(condition), DType.BOOL)
    states = len(node.inputs) - 2
    outputs = _padded(node, len(body.outputs) - 1)
    known = builder.known.get(count) if count else None
    goes_on = source_of(body, body.outputs[0])
    obeys = (condition or not count) and not (
        goes_on == body.inputs[1] or _is_true(builder, body, goes_on)
    )
    written = [
        _Part(outer, inner)
        for outer, inner in zip(outputs[states:], body.outputs[1 + states :], strict=True)
        if outer
    ]
    if written:
        trips = trip_count(node.inputs, body, builder.known.get)
        require(all(trips == builder.value(part.outer).static_shape[0] for part in written))
    _repeat(builder, node, _Form(
        body,
        _states(node.inputs[2:], body.inputs[2:], body.outputs[1:], outputs),
        written=tuple(written),
        next_result=body.outputs[0] if obeys else "",
        numbers=body.inputs[:2],
        count="" if known is not None else count,
        condition=condition,
        most=ABSENT if known is None else max(0, int(known.array().item())),
    ))  # fmt: skip


def scan(builder: Builder, node: Node) -> None:
    """Emit a Scan, which takes its slices along any axes, from either end."""
    require(node.version >= _UNBATCHED_SCAN_VERSION)
    body, count = _graph(node, "body"), node.integer("num_scan_inputs")
    states = len(node.inputs) - count
    outputs = _padded(node, len(body.outputs))
    read = _parts(node, "scan_input", node.inputs[states:], body.inputs[states:])
    written = _parts(node, "scan_output", outputs[states:], body.outputs[states:])
    written = tuple([part for part in written if part.outer])
    lengths = {_whole(builder, part)[0] for part in (*read, *written)}
    require(len(lengths) == 1)
    _repeat(builder, node, _Form(
        body,
        _states(node.inputs[:states], body.inputs, body.outputs, outputs),
        read,
        written,
        most=lengths.pop(),
    ))  # fmt: skip


def _repeat(builder: Builder, node: Node, form: _Form) -> None:
    """Emit a loop.

    Raises:
        NotCoveredError: Types around it and in its body differ, or the body has no native program.
    """
    _require_types(builder, form)
    states = form.changing
    results = [form.next_result] if form.next_result else []
    results += [result for _, _, result, _ in states] + [part.inner for part in form.written]
    made, updated = _updating(lower_body(builder, node, form.body, results), form)
    written = {name: builder.output(name) for name in node.writes}
    places = {"": ABSENT, **{name: number for number, name in enumerate(written)}}
    operands = Operands(tuple(written.values()), [])

    def read(name: str) -> int:
        return operands.read(builder.dense(name)) if name else ABSENT

    kept = [each for each in form.states if each not in states]
    fixed = {inner: builder.dense(initial) for initial, inner, _, _ in kept}
    body = bound_body(builder, made, operands, {**_captured(builder, made), **fixed})
    slots = iter([made.result_slot(index) for index in range(len(results))])
    next_slot = next(slots) if form.next_result else ABSENT
    scratch = _Scratch(body.plan.plan.peak_bytes)
    carried = [
        _carried((made.input_slot(inner), next(slots), read(initial), places[outer]),
                 builder.value(initial).size_bytes, None if inner in updated else scratch)
        for initial, inner, _, outer in states
    ]  # fmt: skip
    parts_read = [
        _slices(builder, part, (made.input_slot(part.inner), read(part.outer)), scratch)
        for part in form.read
    ]
    parts_written = [
        _slices(builder, part, (next(slots), places[part.outer]), scratch) for part in form.written
    ]
    returned = [
        KeptValue(read(initial), places[outer], builder.value(initial).size_bytes)
        for initial, _, _, outer in kept
        if outer
    ]
    number_slot, goes_on_slot = map(made.input_slot, form.numbers) if form.numbers else _NO_NUMBERS
    iterations = Iterations(
        tuple(carried), tuple(parts_read), tuple(parts_written), tuple(returned),
        form.most, read(form.count), read(form.condition), number_slot, goes_on_slot, next_slot,
        scratch.taken(_NUMBERS_BYTES), bool(form.next_result),
    )  # fmt: skip
    _emit(builder, node, operands, (body,), iterations, scratch.size_bytes)


class _Scratch:
    """Bytes behind the arena of a body."""

    def __init__(self, arena_bytes: int) -> None:
        self.size_bytes = _aligned(arena_bytes)

    def taken(self, size_bytes: int) -> int:
        """Return the offset of bytes that are added."""
        offset = self.size_bytes
        self.size_bytes += _aligned(size_bytes)
        return offset


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT) * ALIGNMENT


def _emit(
    builder: Builder,
    node: Node,
    operands: Operands,
    bodies: tuple[Body, ...],
    iterations: Iterations,
    scratch_bytes: int,
) -> None:
    reads = tuple(operands.inputs)
    builder.step(
        node,
        ("native", node.operator.lower()),
        (reads, operands.outputs),
        ControlWork(bodies, iterations, operands.outputs, reads),
        scratch_bytes=max(scratch_bytes, ALIGNMENT),
    )


def _updating(made: LoweredBody, form: _Form) -> tuple[LoweredBody, set[str]]:
    """Have states updated in place where that is possible; return the inputs of these."""
    updated: set[str] = set()
    first = 1 if form.next_result else 0
    for index, (_, inner, _, outer) in enumerate(form.changing):
        places = made.input_slot(inner), made.result_slot(first + index)
        lowered = updating(made.lowered, *places) if outer else None
        if lowered is not None:
            made = replace(made, lowered=lowered)
            updated.add(inner)
    return made, updated


def _carried(
    places: tuple[int, int, int, int], size_bytes: int, scratch: _Scratch | None
) -> CarriedState:
    """Make a state of its input, result, initial value and output; None updates it in place."""
    if scratch is None:
        return CarriedState(*places, ABSENT, size_bytes)
    spare = scratch.taken(size_bytes)
    if places[3] == ABSENT:
        scratch.taken(size_bytes)
    return CarriedState(*places, spare, size_bytes)


def _slices(builder: Builder, part: _Part, places: tuple[int, int], scratch: _Scratch) -> Slices:
    """Make the parts of a value, given the slot of the body and the operand."""
    length, rows, row_bytes = _whole(builder, part)
    step, stride = row_bytes, length * row_bytes
    first = (length - 1) * step if part.is_backward and length else 0
    dense = scratch.taken(rows * row_bytes) if rows > 1 else 0
    return Slices(
        *places, rows, row_bytes, stride, first, -step if part.is_backward else step, dense
    )


def _whole(builder: Builder, part: _Part) -> tuple[int, int, int]:
    """Return the number of slices of a value, and the rows of a slice and their bytes."""
    value = builder.value(part.outer)
    require(value.is_static)
    shape = value.static_shape
    require(-len(shape) <= part.axis < len(shape))
    axis = part.axis % len(shape)
    assert value.dtype is not None
    row_bytes = element_count(shape[axis + 1 :]) * value.dtype.itemsize
    return shape[axis], element_count(shape[:axis]), row_bytes


def _require_types(builder: Builder, form: _Form) -> None:
    """Leave the node to the next tier unless types in the body are those around it."""
    for initial, inner, result, outer in form.states:
        value = builder.value(initial)
        for name in (inner, result):
            _require_like(value_of(builder, form.body, name), value)
        if outer:
            _require_like(builder.value(outer), value)
    for part in (*form.read, *form.written):
        _whole(builder, part)
        outer_value = builder.value(part.outer)
        shape = list(outer_value.static_shape)
        del shape[part.axis]
        _require_like(
            value_of(builder, form.body, part.inner), replace(outer_value, shape=tuple(shape))
        )
    if form.next_result:
        _require_one(value_of(builder, form.body, form.next_result), DType.BOOL)


def _require_like(value: Value, other: Value) -> None:
    require(value.is_static and other.is_static and value.dtype is other.dtype)
    require(value.static_shape == other.static_shape)


def _require_one(value: Value, dtype: DType) -> None:
    """Leave the node to the next tier unless a value is one element of a type."""
    require(value.is_static and value.dtype is dtype and element_count(value.static_shape) == 1)


def _graph(node: Node, attribute: str) -> Graph:
    graph = node.attributes.get(attribute)
    require(isinstance(graph, Graph))
    assert isinstance(graph, Graph)
    return graph


def _captured(builder: Builder, made: LoweredBody) -> dict[str, Operand]:
    return {name: builder.dense(name) for name in made.captured}


def _padded(node: Node, count: int) -> tuple[str, ...]:
    """Return the names of all outputs that there can be, `""` for those left out."""
    require(len(node.outputs) <= count)
    return (*node.outputs, *[""] * (count - len(node.outputs)))


def _states(*columns: Sequence[str]) -> tuple[tuple[str, str, str, str], ...]:
    initial, inputs, results, outputs = columns
    return tuple(zip(initial, inputs, results, outputs, strict=False))


def _parts(node: Node, kind: str, outer: Sequence[str], inner: Sequence[str]) -> tuple[_Part, ...]:
    """Make the values that a Scan slices, by its attributes of a kind."""
    axes = _integers(node, f"{kind}_axes", len(inner))
    directions = _integers(node, f"{kind}_directions", len(inner))
    return tuple([
        _Part(name, own, axis, bool(direction))
        for name, own, axis, direction in zip(outer, inner, axes, directions, strict=True)
    ])  # fmt: skip


def _integers(node: Node, name: str, count: int) -> tuple[int, ...]:
    values = node.attributes.get(name, (0,) * count)
    require(isinstance(values, tuple) and len(values) == count)
    assert isinstance(values, tuple)
    return tuple(int(value) for value in values)


def _is_true(builder: Builder, body: Graph, name: str) -> bool:
    constant = body.constant(name)
    if constant is None and name in body.captures:
        constant = builder.known.get(name)
    return constant is not None and bool(constant.array().all())
