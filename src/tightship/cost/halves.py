"""Rewrites a training step so that values wait for late readers in bfloat16, as in `train`."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from operator import itemgetter

from tightship.cost.schedule import schedule_of
from tightship.cost.step_nodes import planned_nodes, renamed
from tightship.errors import InputError
from tightship.graph import DType, Graph, Node, Value
from tightship.graph.new_names import NewNames
from tightship.graph.operators import Category, row_of
from tightship.planner import Schedule, place_schedule
from tightship.planner.halved import NARROWS, halved

_OPSET = 13
_CODES = {DType.FLOAT32: 1, DType.BFLOAT16: 16}
"""Numbers of the types in ONNX."""


def in_precision(graph: Graph, precision: str, held: Collection[str] = ()) -> Graph:
    """Return a training step whose values wait in a type, unless that takes more in this order.

    Args:
        graph: The typed graph of a training step.
        precision: `float32`, for the step as it is, or `bfloat16`.
        held: Results that lie in the caller's memory, such as gradients of weights.

    Raises:
        InputError: The type is neither `float32` nor `bfloat16`.
    """
    if precision not in ("float32", "bfloat16"):
        raise InputError(f"`precision` is {precision!r}; it must be `float32` or `bfloat16`.")
    if precision == "float32":
        return graph
    made = with_halves(graph)
    before, after = (
        place_schedule(schedule_of(each, held=held).schedule).plan.peak_bytes
        for each in (graph, made)
    )
    return made if after < before else graph


def with_halves(graph: Graph) -> Graph:
    """Add a Cast of each float32 value with late readers, and one before each of these.

    Masks and results of elementwise nodes of one such value are computed again instead. Results
    that a caller holds are read as late as any: call this before they are known to lie outside.

    Args:
        graph: The typed graph of a training step.
    """
    schedule, nodes = schedule_of(graph).schedule, planned_nodes(graph)
    found = halved(schedule, _of(graph, schedule, DType.FLOAT32), {*_cheap(graph, schedule, nodes)})
    count = len(schedule.values)
    names = [value.name for value in found.schedule.values]
    names[count:] = map(NewNames(graph).new, names[count:])
    made: list[tuple[int, Node]] = []
    last = {value: i for i, step in enumerate(found.schedule.steps) for value in step.reads}
    values = dict(graph.values)
    for place, (step, index) in enumerate(zip(found.schedule.steps, found.origin, strict=True)):
        if index >= 0:
            node = renamed(nodes[index], step, schedule.steps[index], names)
            values |= {
                new: replace(graph.value(old), name=new)
                for old, new in zip(nodes[index].writes, node.writes, strict=True)
            }
        else:
            node = _cast(names[step.reads[0]], names[step.writes[0]], narrows=index == NARROWS)
            source = values[node.inputs[0]]
            dtype = DType.BFLOAT16 if index == NARROWS else DType.FLOAT32
            values[node.outputs[0]] = Value(node.outputs[0], dtype, source.shape)
        made.append((last[step.reads[0]] if index == NARROWS else place, node))
    known = [node for node in graph.nodes if node not in nodes]
    made.sort(key=itemgetter(0))  # a value is narrowed behind its last other reader
    return replace(graph, nodes=(*known, *[node for _, node in made]), values=values)


def _cast(source: str, target: str, *, narrows: bool) -> Node:
    code = _CODES[DType.BFLOAT16 if narrows else DType.FLOAT32]
    return Node(target, "Cast", (source,), (target,), {"to": code}, version=_OPSET)


def _of(graph: Graph, schedule: Schedule, dtype: DType) -> set[int]:
    """Return the indices of values of a type."""
    return {i for i, each in enumerate(schedule.values) if graph.value(each.name).dtype is dtype}


def _cheap(graph: Graph, schedule: Schedule, nodes: list[Node]) -> Iterator[int]:
    """Yield masks, and results that nodes compute element by element of one value."""
    yield from _of(graph, schedule, DType.BOOL)
    for node, step in zip(nodes, schedule.steps, strict=True):
        is_elementwise = row_of(node).category is Category.ELEMENTWISE and not node.domain
        if is_elementwise and len(step.reads) == len(step.writes) == len(node.reads) == 1:
            yield step.writes[0]
