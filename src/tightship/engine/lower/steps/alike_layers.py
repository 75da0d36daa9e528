"""Layers of a network that are alike: equal nodes, again and again, over values of their own.

What is alike here is alike for all lengths that the graph's symbolic ones may have.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship.engine.lower.passes.affine import Scaled
from tightship.graph import (
    AttributeValue,
    Constant,
    Derived,
    DType,
    Graph,
    Layer,
    Node,
    element_count,
)
from tightship.graph.symbolic import constant_key, length_key

LAYERS_MIN = 3
"""Fewer are not worth the comparison."""
WEIGHTED = frozenset(
    {"Add", "Gemm", "LayerNormalization", "MatMul", "Mul", "RMSNormalization", "Sub"}
)
"""Operators whose kernels do not depend on what is in a vector or matrix of real numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class LayerRun:
    """Nodes `[start, start + period)`, and layers of as many after them that are like these.

    After the last of them comes one more of equal nodes, whose values may be read otherwise.

    Attributes:
        start: The first node of the first layer.
        period: Nodes of a layer.
        values: For each layer its values, constants included; what is at one place in two layers
            plays the same part in both, or is one value that both have.
        nodes: For each layer the names of its nodes, likewise.
        entering: Places of values that come from before the layer.
        constants: Places of constants.
    """

    start: int
    period: int
    values: tuple[tuple[str, ...], ...]
    nodes: tuple[tuple[str, ...], ...]
    entering: tuple[int, ...]
    constants: tuple[int, ...]

    @property
    def stop(self) -> int:
        """The first node after the last layer."""
        return self.start + self.period * len(self.values)


def alike_layers(graph: Graph) -> tuple[LayerRun, ...]:
    """Layers that are alike, longest runs first, then in order."""
    kinds: dict[Hashable, int] = {}
    numbers = [kinds.setdefault(_kind(graph, node), len(kinds)) for node in graph.nodes]
    found: list[LayerRun] = []
    pending = [(0, len(numbers))]
    while pending:
        start, stop = pending.pop()
        run = _longest(np.array(numbers[start:stop]))
        if run is None:
            continue
        first, period, count = start + run[0], run[1], run[2]
        repeat = _alike(graph, first, period, count)
        if repeat is not None:
            found.append(repeat)
        pending += [(start, first), (first + period * count, stop)]
    return tuple(sorted(found, key=lambda repeat: repeat.start))


def _longest(kinds: NDArray[np.int64]) -> tuple[int, int, int] | None:
    """Start, period and number of the equal stretches that cover most of a sequence."""
    best: tuple[int, int, int] | None = None
    for period in range(1, len(kinds) // LAYERS_MIN + 1):
        differs = np.flatnonzero(kinds[:-period] != kinds[period:])
        edges = np.concatenate([[-1], differs, [len(kinds) - period]])
        lengths = np.diff(edges) - 1
        longest = int(lengths.argmax())
        count = int(lengths[longest]) // period + 1
        covered = 0 if best is None else best[1] * best[2]
        if count >= LAYERS_MIN and count * period > covered:
            best = int(edges[longest]) + 1, period, count
    return best


def _alike(graph: Graph, start: int, period: int, count: int) -> LayerRun | None:
    """The longest run of layers whose values play the same parts, the last of all left out."""
    layers = [_Layer.of(graph, start + period * index, period) for index in range(count - 1)]
    run, first = layers[:1], 0
    for index in range(1, len(layers)):
        if not _follows(layers, first, index):
            first = index
        if index + 1 - first > len(run):
            run = layers[first : index + 1]
    if len(run) < LAYERS_MIN - 1:
        return None
    return LayerRun(
        run[0].start,
        period,
        tuple(layer.values for layer in run),
        tuple(layer.nodes for layer in run),
        tuple(place for place, name in enumerate(run[0].values) if run[0].enters(name)),
        tuple(place for place, name in enumerate(run[0].values) if name in graph.constants),
    )


def _follows(layers: "Sequence[_Layer]", first: int, index: int) -> bool:
    """Whether a layer is like the one before it, and as many values are shared as before."""
    layer, before = layers[index], layers[index - 1]
    return before.pairs(layer) and (
        index - 1 == first or before.shared(layer) == layers[first].shared(layers[first + 1])
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    graph: Graph
    start: int
    period: int
    values: tuple[str, ...]
    nodes: tuple[str, ...]
    pattern: tuple[int, ...]
    """Places in `values` of what the nodes read and write, in order; -1 for what is absent."""

    @classmethod
    def of(cls, graph: Graph, start: int, period: int) -> "_Layer":
        parts = [
            part for node in graph.nodes[start : start + period] for part in (node, *node.fused)
        ]
        named = [name for part in parts for name in (*part.inputs, *part.outputs)]
        places = {name: place for place, name in enumerate(dict.fromkeys(filter(None, named)))}
        pattern = tuple(places.get(name, -1) for name in named)
        return cls(graph, start, period, tuple(places), tuple(p.name for p in parts), pattern)

    def enters(self, name: str) -> bool:
        """Whether a value, no constant, comes from before the layer."""
        nodes = self.graph.nodes[self.start : self.start + self.period]
        return name not in self.graph.constants and not any(
            name in part.outputs for node in nodes for part in (node, *node.fused)
        )

    def pairs(self, other: "_Layer") -> bool:
        """Whether values at equal places are one, or constants, or read at equal distances."""
        return self.pattern == other.pattern and all(
            name == twin or name in self.graph.constants or self._is_read_as(name, other, twin)
            for name, twin in zip(self.values, other.values, strict=True)
        )

    def _is_read_as(self, name: str, other: "_Layer", twin: str) -> bool:
        """Whether two values are read by nodes that play the same parts: up to the next layer."""
        distances, others = self._distances(name), other._distances(twin)
        return distances == others and (not distances or distances[-1] < 2 * self.period)

    def shared(self, other: "_Layer") -> tuple[bool, ...]:
        """Which values that are no constants both layers have."""
        return tuple(
            name == twin and name not in self.graph.constants
            for name, twin in zip(self.values, other.values, strict=True)
        )

    def _distances(self, name: str) -> tuple[int, ...]:
        """Nodes from the layer's first to each that reads a value."""
        return tuple(index - self.start for index in self.graph.reads.get(name, ()))


def _kind(graph: Graph, node: Node) -> Hashable:
    """What a kernel for the node depends on, except where its operands are."""
    if node.subgraphs:
        return node.name
    is_weighted = node.operator in WEIGHTED and not node.domain
    return (
        node.operator,
        node.domain,
        node.version,
        tuple(sorted((name, _attribute_key(value)) for name, value in node.attributes.items())),
        tuple([_operand_key(graph, name, is_weighted=is_weighted) for name in node.inputs]),
        tuple([_operand_key(graph, name, is_weighted=False) for name in node.outputs]),
        tuple([_kind(graph, part) for part in node.fused]),
    )


def _operand_key(graph: Graph, name: str, *, is_weighted: bool) -> Hashable:
    if not name:
        return None
    constant, value = graph.constants.get(name), graph.value(name)
    if constant is not None and is_weighted and _is_weight(constant):
        return "weight", _form(constant)
    if constant is not None:
        return "constant", constant_key(constant)
    known = graph.known.get(name)
    shape = None if value.shape is None else tuple([_dimension(d) for d in value.shape])
    return (
        value.dtype,
        shape,
        None if known is None else constant_key(known),
        name in graph.outputs,
    )


def _dimension(dimension: int | str | None) -> Hashable:
    return length_key(dimension) if isinstance(dimension, int) else ("open", dimension)


def _is_weight(constant: Constant) -> bool:
    is_float = constant.dtype in (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)
    return (
        is_float
        and all(type(d) is int for d in constant.shape)
        and (element_count(constant.shape) > 1)
    )


def _form(constant: Constant) -> Hashable:
    """Equal for constants that differ in their elements alone.

    Of what kernels take by its sources (integers and their zero point, halves), equal constants.
    """
    if isinstance(constant, Derived) and type(constant) is not Derived:
        return constant_key(constant)
    form: tuple[Hashable, ...] = type(constant), constant.dtype, constant.shape
    if isinstance(constant, Scaled):
        return *form, _form(constant.source), _form(constant.factor)
    if isinstance(constant, Derived):
        recipe = id(constant) if constant.recipe is None else constant.recipe
        return *form, recipe, tuple(map(_form, constant.sources))
    return form


def _attribute_key(value: AttributeValue) -> Hashable:
    if isinstance(value, tuple):
        return "list", tuple([length_key(v) if isinstance(v, int) else v for v in value])
    if isinstance(value, int):
        return "number", length_key(value)
    if isinstance(value, (float, str, bytes)):
        return type(value).__name__, value
    return "other", id(value) if isinstance(value, Graph | Layer) else constant_key(value)
