"""Makes a schedule of a graph: every node a step, every tensor as large as its elements."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tightship.graph import Constant, Graph, Node
from tightship.graph.layout import DType, size_bytes
from tightship.graph.operators import Category, row_of
from tightship.planner import Alias, AliasKind, Schedule, ScheduledValue, Step

ALIGNMENT = 64
"""Alignment of every tensor, in bytes."""


@dataclass(frozen=True, slots=True)
class GraphSchedule:
    """A graph's schedule, and the bytes outside of it.

    Attributes:
        schedule: Intermediate values and outputs; inputs are external, constants left out.
        input_bytes: Bytes of the inputs.
        weight_bytes: Bytes of the constants that a step reads.
        unsized: Names of values whose size depends on data, counted as 0 bytes.
    """

    schedule: Schedule
    input_bytes: int
    weight_bytes: int
    unsized: tuple[str, ...]


def schedule_of(
    graph: Graph, *, donate_inputs: bool = False, held: Collection[str] = ()
) -> GraphSchedule:
    """Make a step of every node of a graph, except those whose results follow from shapes.

    Outputs are kept to the end; updated weights lie in their inputs. Bodies of If, Loop and Scan
    are not counted.

    Args:
        graph: The typed graph.
        donate_inputs: Whether the caller gives its inputs up, so that they may be written over;
            False by default.
        held: Results that lie in the caller's memory, such as gradients of weights.
    """
    known = graph.known
    nodes = [node for node in graph.nodes if not known or not all(n in known for n in node.writes)]
    names = dict.fromkeys(graph.inputs)
    for node in nodes:
        names.update(dict.fromkeys(node.writes))
    index_of = {name: index for index, name in enumerate(names)}
    inputs = frozenset(graph.inputs)
    outside = inputs.union(_shown_outside(nodes, held), _updated(nodes))
    types = [graph.value(name) for name in names]
    sizes = [value.size_bytes if value.is_static else 0 for value in types]
    values = tuple([
        ScheduledValue(name, size, ALIGNMENT, name in outside, donate_inputs and name in inputs)
        for name, size in zip(names, sizes, strict=True)
    ])  # fmt: skip
    steps = tuple([_step(graph, node, index_of) for node in nodes])
    outputs = tuple(index_of[name] for name in dict.fromkeys(graph.outputs) if name in index_of)
    read = {name for node in nodes for name in node.reads}
    return GraphSchedule(
        Schedule(values, steps, outputs),
        sum(sizes[: len(inputs)]),  # inputs come first among the names
        sum(_constant_bytes(graph.constant(name)) for name in read - index_of.keys()),
        tuple([value.name for value in types if not value.is_static]),
    )


def _updated(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield weights and their state that are written over their inputs."""
    for node in nodes:
        if row_of(node).category is Category.UPDATING:
            yield from node.writes


def _shown_outside(nodes: Sequence[Node], held: Collection[str]) -> set[str]:
    """Return values held outside, and values of which these are reshaped views."""
    outside = set(held)
    for node in reversed(nodes) if held else ():
        if row_of(node).category is Category.RESHAPING and node.outputs[0] in outside:
            outside.add(node.inputs[0])
    return outside


def _step(graph: Graph, node: Node, index_of: Mapping[str, int]) -> Step:
    aliases = tuple([
        Alias(index_of[output], index_of[source], kind, offset_bytes)
        for output, source, kind, offset_bytes in _aliases(graph, node, index_of)
    ])  # fmt: skip
    reads = tuple([index_of[name] for name in node.reads if name in index_of])
    writes = tuple([index_of[name] for name in node.writes])
    return Step(node.name, node.operator, reads, writes, 0, aliases)


def _constant_bytes(constant: Constant | None) -> int:
    if constant is None or constant.dtype is DType.STRING:
        return 0
    return size_bytes(constant.dtype, constant.shape)


def _aliases(
    graph: Graph, node: Node, planned: Collection[str]
) -> Iterator[tuple[str, str, AliasKind, int]]:
    """Yield outputs that are, or may be, in the bytes of an input, with the offset in bytes.

    Operators of ONNX have aliases, and the operators that gradients are written with.
    """
    if node.fused or not node.inputs:
        return
    first, category = node.inputs[0], row_of(node).category
    if category is Category.RESHAPING and first in planned:
        yield node.outputs[0], first, AliasKind.VIEW, 0
    elif category is Category.CUTTING and first in planned and _is_stretch(graph, node):
        yield from ((output, first, AliasKind.VIEW, 0) for output in node.writes)
    elif category is Category.JOINING and node.outputs[0] in planned:
        yield from _parts(graph, node, planned)
    elif category is Category.UPDATING:
        for output, source in _written_over(node):
            yield output, source, AliasKind.TIED, 0
    else:
        for output, source in _written_over(node):
            if source in planned and _fits(graph, source, output):
                yield output, source, AliasKind.IN_PLACE, 0


def _written_over(node: Node) -> Iterator[tuple[str, str]]:
    """Yield outputs with an input that each may overwrite; types are not considered."""
    row = row_of(node)
    if row.signature is not None:
        pairs = row.signature.in_place
        yield from ((node.outputs[o], node.inputs[i]) for o, i in pairs if node.outputs[o])
    elif row.category is Category.ELEMENTWISE:
        yield from ((node.outputs[0], source) for source in dict.fromkeys(node.inputs))
    elif row.category in (Category.NORMALIZING, Category.REPLACING):
        yield node.outputs[0], node.inputs[0]
    elif row.category is Category.LOSS and len(node.writes) > 1:
        yield node.outputs[1], node.inputs[0]


def _parts(
    graph: Graph, node: Node, planned: Collection[str]
) -> Iterator[tuple[str, str, AliasKind, int]]:
    """Yield operands of a concatenation that lie in its result unchanged, one after another."""
    whole = graph.value(node.outputs[0])
    parts = [graph.value(name) for name in node.inputs]
    if not whole.is_static or not all(part.is_static for part in parts):
        return
    if not all(_is_leading(whole.static_shape, part.static_shape) for part in parts):
        return
    offset_bytes = 0
    for name, part in zip(node.inputs, parts, strict=True):
        if name in planned:
            yield node.outputs[0], name, AliasKind.PART, offset_bytes
        offset_bytes += part.size_bytes


def _fits(graph: Graph, source: str, output: str) -> bool:
    """Whether each element of the output can be written over an element of at least its size."""
    one, other = graph.value(source), graph.value(output)
    if one.shape != other.shape or not one.is_static or not other.is_static:
        return False
    return one.dtype is other.dtype or other.size_bytes <= one.size_bytes


def _is_stretch(graph: Graph, node: Node) -> bool:
    """Whether each output of a Slice or Split is one contiguous range of the input."""
    whole = graph.value(node.inputs[0])
    parts = [graph.value(name) for name in node.writes]
    if not whole.is_static or not all(part.is_static for part in parts):
        return False
    if node.operator == "Slice" and len(node.inputs) > 4:
        steps = graph.constant(node.inputs[4])
        if steps is None or (steps.array() != 1).any():
            return False
    return all(_is_leading(whole.static_shape, part.static_shape) for part in parts)


def _is_leading(whole: tuple[int, ...], part: tuple[int, ...]) -> bool:
    """Whether a part differs from the whole only along the first axis whose length is not 1."""
    cut = [axis for axis, pair in enumerate(zip(whole, part, strict=True)) if pair[0] != pair[1]]
    return not cut or (len(cut) == 1 and prod(whole[: cut[0]]) == 1)
