"""Makes programs of the bodies of control flow, over operands of the step that runs them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tightship.engine.kernels.kernel_context import covered, require
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.relocated_work import relocated_work
from tightship.engine.program.program import (
    NATIVE_WORK,
    Body,
    Lowered,
    LoweredStep,
    Operand,
    PackedWeight,
    PrimitiveWork,
    Slot,
    Space,
)
from tightship.graph import Graph, Node, Value
from tightship.graph.ir import leading_to
from tightship.graph.new_names import NewNames

_OPSET = 18


@dataclass(slots=True)
class Operands:
    """Operands of a step of control flow by number: its outputs, then what it reads."""

    outputs: tuple[Operand, ...]
    inputs: list[Operand]

    def read(self, operand: Operand) -> int:
        """Return the number of an operand that is read, added unless it is one already."""
        if operand not in self.inputs:
            self.inputs.append(operand)
        return len(self.outputs) + self.inputs.index(operand)


@dataclass(frozen=True, slots=True)
class LoweredBody:
    """Lowered body, not yet over operands of its step.

    Attributes:
        graph: Body whose captures are inputs, or constants.
        lowered: Its program, with weights of its own.
        results: Name of each result that it gives, in order.
        prefix: Beginning of the names of constants that are its own.
        given: Inputs that it declares.
    """

    graph: Graph
    lowered: Lowered
    results: tuple[str, ...]
    prefix: str
    given: tuple[str, ...]

    @property
    def captured(self) -> tuple[str, ...]:
        """Captures that are inputs: the last ones."""
        return self.graph.inputs[len(self.given) :]

    def input_slot(self, name: str) -> int:
        """Return the slot of an input."""
        return self.lowered.inputs[name].slot

    def result_slot(self, index: int) -> int:
        """Return the slot of a result."""
        return self.lowered.outputs[self.results[index]].slot


def value_of(builder: Builder, body: Graph, name: str) -> Value:
    """Return the type of a body's value, which may be one that it captures."""
    value = body.value(name)
    return builder.value(name) if name in body.captures and not value.is_static else value


def source_of(body: Graph, name: str) -> str:
    """Follow a value of a body to the one that it is a copy of."""
    copied = {n.outputs[0]: n.inputs[0] for n in body.nodes if n.operator == "Identity"}
    while name in copied:
        name = copied[name]
    return name


def lower_body(builder: Builder, node: Node, body: Graph, results: Sequence[str]) -> LoweredBody:
    """Lower a body that gives these of its values; adds nothing to the program around it.

    Raises:
        NotCoveredError: One of its nodes has no native kernel, or its types are not known.
    """
    maker = covered(builder.options.bodies)
    attribute = next(name for name, each in node.attributes.items() if each is body)
    prefix = f"{node.writes[0] if node.writes else node.name}.{attribute}."
    closed, names = _closed(builder, body, results)
    packed = {
        name.removeprefix(prefix): weights
        for name, weights in (builder.options.packed or {}).items()
    }
    options = replace(builder.options, packed=packed if builder.options.packed else None)
    lowered = covered(maker.lowered(closed, options))
    require(all(isinstance(step.work, NATIVE_WORK) for step in lowered.steps))
    require(not lowered.objects)
    return LoweredBody(closed, lowered, names, prefix, body.inputs)


def _closed(builder: Builder, body: Graph, results: Sequence[str]) -> tuple[Graph, tuple[str, ...]]:
    """Turn captures into inputs or constants, and give every result a name of its own."""
    known = {name: builder.constant(name) or builder.known.get(name) for name in body.captures}
    constants = {name: each for name, each in known.items() if each is not None}
    captured = [name for name in body.captures if name not in constants]
    require(all(builder.value(name).is_static for name in captured))
    values = {**body.values, **{name: builder.value(name) for name in body.captures}}
    names, nodes, given = NewNames(body), list(body.nodes), list[str]()
    for name in results:
        new = name
        if name in (*given, *body.inputs, *body.captures):
            new = names.new(f"{name}.result")
            nodes.append(Node(new, "Identity", (name,), (new,), version=_OPSET))
            values[new] = replace(values[name], name=new)
        given.append(new)
    inputs = (*body.inputs, *captured)
    require(all(name in values and values[name].is_static for name in inputs))
    closed = replace(
        body,
        inputs=inputs,
        outputs=tuple(given),
        nodes=leading_to(given, nodes),
        values=values,
        constants={**body.constants, **constants},
        captures=(),
    )
    return closed, tuple(given)


def updating(lowered: Lowered, before: int, after: int) -> Lowered | None:
    """Let a program update a state in place: its input and its result may then be the same bytes.

    It can if a single step reads the input and writes the result, as their sum with something.

    Args:
        lowered: Program of a body.
        before: Slot of the input.
        after: Slot of the result.

    Returns:
        The program; None if it cannot.
    """
    touching = [
        index
        for index, step in enumerate(lowered.steps)
        if any(_is_in(each, before) for each in step.reads)
        or any(_is_in(each, after) for each in step.writes)
    ]
    if len(touching) != 1:
        return None
    step = lowered.steps[touching[0]]
    sources = [each for each in step.reads if _is_in(each, before)]
    if step.operator != "Add" or len(step.reads) != 2 or len(sources) != 1 or len(step.writes) != 1:
        return None
    (source,), (target,) = sources, step.writes
    others = {(each.dtype, each.shape, each.desc, each.offset_bytes) for each in (source, target)}
    if len(others) > 1 or not _is_in(target, after):
        return None
    work = step.work
    if isinstance(work, PrimitiveWork):
        (first, left), (second, right), last = work.arguments
        if left != source:
            if left.desc != right.desc:
                return None
            work = work._replace(arguments=((first, right), (second, left), last))
    steps = list(lowered.steps)
    steps[touching[0]] = step._replace(work=work)
    return lowered._replace(steps=tuple(steps))


def _is_in(operand: Operand, slot: int) -> bool:
    return operand.space is Space.EXTERNAL and operand.slot == slot


def bound_body(
    builder: Builder, made: LoweredBody, operands: Operands, bound: Mapping[str, Operand]
) -> Body:
    """Place a body's program over operands of its step.

    Args:
        builder: The program around it, which gets its weights.
        made: The body.
        operands: Operands of the step, to be added to.
        bound: Inputs and results of the body, by name, that are an operand in every run of it.
    """
    lowered = made.lowered
    slots, pairs, homes = list(lowered.slots), list[tuple[int, int]](), dict[int, int]()
    for index, weight in enumerate(lowered.weights):
        operand = _adopted(builder, made, weight)
        homes[index] = len(slots)
        slots.append(Slot(operand.name, weight.size_bytes, external=True))
        pairs.append((homes[index], operands.read(operand)))
    for name, operand in bound.items():
        if name in lowered.inputs:
            pairs.append((made.input_slot(name), operands.read(operand)))
        else:
            pairs.append((lowered.outputs[name].slot, operands.outputs.index(operand)))

    def move(operand: Operand) -> Operand:
        if operand.space is not Space.WEIGHTS:
            return operand
        return operand._replace(space=Space.EXTERNAL, slot=homes[operand.slot])

    def step_of(step: LoweredStep) -> LoweredStep:
        reads = tuple(map(move, step.reads))
        return step._replace(reads=reads, work=relocated_work(step.work, move))

    steps = tuple(map(step_of, lowered.steps))
    whole = lowered._replace(steps=steps, slots=tuple(slots), weights=())
    return covered(builder.options.bodies).place(whole, tuple(pairs))


def _adopted(builder: Builder, made: LoweredBody, weight: PackedWeight) -> Operand:
    """Add a weight of a body to the program around it; a captured constant is shared with that."""
    constant = builder.constant(weight.name)
    if constant is None or made.graph.constants.get(weight.name) is not constant:
        weight = weight._replace(name=f"{made.prefix}{weight.name}")
    elif weight.source is None and weight.constant is constant:
        home = builder.home(weight.name)
        if home.space is Space.WEIGHTS:
            return home
    index = builder.records.weights.adopted(weight)
    shape = weight.constant.shape
    return Operand(weight.name, Space.WEIGHTS, index, weight.constant.dtype, shape, weight.desc)
