"""Finds repeated layers of a network: equal runs of nodes over values of their own.

Layers found equal are equal for all values of the graph's symbolic lengths.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from tightship.engine.lower.passes.affine import Scaled
from tightship.engine.lower.passes.blocks import BlockWeights
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
from tightship.graph.equal_runs import RUNS_MIN, LayerRun, longest_run
from tightship.graph.row_by_row import RowByRow
from tightship.graph.symbolic import constant_key, length_key

WEIGHTED = frozenset(
    {"Add", "Gemm", "LayerNormalization", "MatMul", "Mul", "RMSNormalization", "Sub"}
)
"""Operators whose kernels do not depend on the elements of a real vector or matrix."""


def alike_layers(graph: Graph) -> tuple[LayerRun, ...]:
    """Find repeated layers, preferring those that cover most nodes; return them in order."""
    kinds: dict[Hashable, int] = {}
    numbers = [kinds.setdefault(_kind(graph, node), len(kinds)) for node in graph.nodes]
    found: list[LayerRun] = []
    pending = [(0, len(numbers))]
    while pending:
        start, stop = pending.pop()
        run = longest_run(np.array(numbers[start:stop]))
        if run is None:
            continue
        first, period, count = start + run[0], run[1], run[2]
        repeat = _alike(graph, first, period, count)
        if repeat is not None:
            found.append(repeat)
        pending += [(start, first), (first + period * count, stop)]
    return tuple(sorted(found, key=lambda repeat: repeat.start))


def _alike(graph: Graph, start: int, period: int, count: int) -> LayerRun | None:
    """Find the longest run of layers whose values correspond, without the last of all."""
    layers = [_Layer.of(graph, start + period * index, period) for index in range(count - 1)]
    run, first = layers[:1], 0
    for index in range(1, len(layers)):
        if not _follows(layers, first, index):
            first = index
        if index + 1 - first > len(run):
            run = layers[first : index + 1]
    if len(run) < RUNS_MIN - 1:
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
    """Whether a layer corresponds to the one before it, and shares the same values with it."""
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
    """Indices into `values` of the nodes' operands, in order; -1 for one left out."""

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
        """Whether a value other than a constant comes from before the layer."""
        nodes = self.graph.nodes[self.start : self.start + self.period]
        return name not in self.graph.constants and not any(
            name in part.outputs for node in nodes for part in (node, *node.fused)
        )

    def pairs(self, other: "_Layer") -> bool:
        """Whether values at equal indices are one, or constants, or read at equal distances."""
        return self.pattern == other.pattern and all(
            name == twin or name in self.graph.constants or self._is_read_as(name, other, twin)
            for name, twin in zip(self.values, other.values, strict=True)
        )

    def _is_read_as(self, name: str, other: "_Layer", twin: str) -> bool:
        """Whether corresponding nodes read the two values, no later than the next layer."""
        distances, others = self._distances(name), other._distances(twin)
        return distances == others and (not distances or distances[-1] < 2 * self.period)

    def shared(self, other: "_Layer") -> tuple[bool, ...]:
        """Tell which values other than constants both layers share."""
        return tuple(
            name == twin and name not in self.graph.constants
            for name, twin in zip(self.values, other.values, strict=True)
        )

    def _distances(self, name: str) -> tuple[int, ...]:
        """List the distances from the layer's first node to each node that reads a value."""
        return tuple(index - self.start for index in self.graph.reads.get(name, ()))


def _kind(graph: Graph, node: Node) -> Hashable:
    """Return a key of all that a kernel depends on, except the addresses of its operands."""
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
    """Return a key that is equal for constants that differ only in their elements.

    Constants that kernels read by their sources (integers with a zero point, halves) must be equal.
    """
    if isinstance(constant, Derived) and type(constant) not in (Derived, BlockWeights):
        return constant_key(constant)
    shape = tuple([length_key(length) for length in constant.shape])
    form: tuple[Hashable, ...] = type(constant), constant.dtype, shape
    if isinstance(constant, RowByRow):
        return *form, constant.recipe
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
