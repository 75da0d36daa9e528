"""Rewritten graph with symbolic lengths, valid for all lengths that the passes treat alike."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import cast

import numpy as np

from tightship.engine.compile.compile_graph import Declared
from tightship.engine.lower.passes.affine import Scaled
from tightship.engine.lower.passes.reshaped import reshaped
from tightship.engine.lower.steps.alike_layers import alike_layers
from tightship.engine.template.equal_parts import equal_constants, equal_nodes
from tightship.engine.template.retype import Retyper
from tightship.graph import (
    AttributeValue,
    Constant,
    Derived,
    DType,
    Fill,
    Graph,
    Inline,
    Mapped,
    Node,
    Shape,
    Value,
)
from tightship.graph.constant import Array
from tightship.graph.equal_runs import LayerRun
from tightship.graph.length import Trace, is_length, length_of
from tightship.graph.moved_constant import NotMovedError
from tightship.graph.open_graphs import SymbolicGraph, Symbols
from tightship.graph.operators.shapes.shape_context import NoRuleError
from tightship.graph.symbolic import SymbolicConstant, depends_on_lengths

Rewrite = Callable[[Graph], Graph]


def template_of(graph: Graph, declared: Declared, rewrite: Rewrite) -> "Template | None":
    """Make a template from a graph of known shapes, by symbolic shapes and passes over them.

    Return None if an operator has no symbolic shape rule.

    Args:
        graph: The model for some shapes; of equal layers few are rewritten, where there are such.
        declared: Shapes of its inputs as its file declares them.
        rewrite: Function that runs the passes.
    """
    if graph.few is not None:
        with suppress(NotMovedError):
            return _template_of(graph.few, declared, rewrite)
    return _template_of(graph, declared, rewrite)


def _template_of(graph: Graph, declared: Declared, rewrite: Rewrite) -> "Template | None":
    followed = _followed(graph, declared)
    return None if followed is None else rewritten_template(followed, rewrite)


def rewritten_template(followed: SymbolicGraph, rewrite: Rewrite) -> "Template | None":
    """Make a template from a graph of symbolic lengths; None if a pass needs a number for one.

    Raises:
        NotMovedError: The graph has few of its layers, and others cannot be copies of them.
    """
    try:
        rewritten = rewrite(followed.graph)
    except TypeError:
        return None
    repeats: Sequence[LayerRun] | None = None
    if rewritten.layers is not None:
        rewritten, repeats = rewritten.layers.whole(rewritten)
    followed.trace.seal()
    return Template(followed.symbols, followed.trace, rewritten, repeats)


def _followed(graph: Graph, declared: Declared) -> SymbolicGraph | None:
    """Propagate the open lengths of a graph of known shapes by the rules of its operators."""
    shapes = {name: graph.value(name).static_shape for name in graph.inputs
              if graph.value(name).is_static}  # fmt: skip
    symbols = symbols_of(shapes, declared)
    if symbols is None:
        return None
    trace = Trace()
    lengths = {name: trace.symbol(name, value) for name, value in symbols.items()}
    followed = {
        name: tuple(lengths.get(symbol, d) for symbol, d in
                    zip(_names(name, len(shape), declared), shape, strict=True))
        for name, shape in shapes.items()
    }  # fmt: skip
    try:
        retyped = Retyper(graph, trace).retyped(followed)
    except (NoRuleError, TypeError):
        return None
    return SymbolicGraph(retyped, trace, lambda shapes: symbols_of(shapes, declared))


def symbols_of(shapes: Mapping[str, Sequence[int]], declared: Declared) -> dict[str, int] | None:
    """Match input shapes against the file; return the length of each symbol.

    Return None if a symbol has two lengths, or a rank or fixed length does not match.
    """
    symbols: dict[str, int] = {}
    for name, shape in shapes.items():
        wanted = declared.get(name)
        if wanted is None or len(wanted) != len(shape):
            return None
        for symbol, dimension, length in zip(
            _names(name, len(shape), declared), wanted, shape, strict=True
        ):
            if isinstance(dimension, int):
                if dimension != length:
                    return None
            elif symbols.setdefault(symbol, length) != length:
                return None
    return symbols


def _names(name: str, rank: int, declared: Declared) -> list[str]:
    """Name each axis of an input by its symbol, or by a name of its own."""
    wanted = declared.get(name) or (None,) * rank
    return [d if isinstance(d, str) else f"{name}.{axis}" for axis, d in enumerate(wanted)]


class Template:
    """Graph whose lengths are expressions, with the conditions under which they hold.

    `repeats` are its repeated layers, whatever the lengths.
    """

    def __init__(
        self,
        symbols: Callable[[Mapping[str, Sequence[int]]], Symbols | None],
        trace: Trace,
        graph: Graph,
        repeats: Sequence[LayerRun] | None = None,
    ) -> None:
        """Take apart what depends on lengths; finds the repeated layers unless they are known."""
        self._symbols = symbols
        self._trace = trace
        self._graph = graph.retyped(graph.nodes, {}, {}, {})  # drops values that no node uses
        self.repeats = alike_layers(graph) if repeats is None else repeats
        names = {*graph.inputs, *graph.outputs, *graph.constants}
        for node in graph.nodes:
            names.update(node.reads, node.writes)
            for part in node.fused:
                names.update(n for n in (*part.inputs, *part.outputs) if n)
            names.update(n for n in (*node.inputs, *node.outputs) if n)
        values = {name: graph.value(name) for name in names}
        self._open = _OpenValues([value for value in values.values() if _is_open(value)])
        self._values = {n: v for n, v in values.items() if not _is_open(v)}
        known = {n: c for n, c in graph.known.items() if n in names and n not in graph.constants}
        self._constants = _Constants.of(graph.constants)
        self._known = _Constants.of(known)
        self._open_nodes = [i for i, node in enumerate(graph.nodes) if _has_length(node)]

    def share(self, held: "Sequence[Template]") -> None:
        """Have what is equal in other templates of the same model from them; drop its own.

        Templates differ in a few nodes: an export for one row has less to broadcast.
        """
        for other in held:
            nodes = equal_nodes(self._graph.nodes, other._graph.nodes)
            self._graph = self._graph.retyped(nodes, {}, {}, {})
            self._constants = self._constants.shared(other._constants)
            self._known = self._known.shared(other._known)
            self._values = {
                name: same if (same := other._values.get(name)) == value else value
                for name, value in self._values.items()
            }

    def graph(self, shapes: Mapping[str, tuple[int, ...]]) -> Graph | None:
        """Bind the graph to input shapes; None if the passes would have made another graph."""
        symbols = self._symbols(shapes)
        numbers = None if symbols is None else self._trace.values(symbols)
        if numbers is None:
            return None
        binder = _Binder(self._trace, numbers)
        nodes = list(self._graph.nodes)
        for index in self._open_nodes:
            nodes[index] = binder.node(nodes[index])
        return self._graph.retyped(
            tuple(nodes),
            self._open.bound(binder, self._values),
            self._constants.bound(binder),
            self._known.bound(binder),
        )


class _OpenValues:
    """Values with symbolic lengths; equal shapes are bound once."""

    def __init__(self, values: Sequence[Value]) -> None:
        self._shapes: list[Shape] = []
        self._types: dict[str, tuple[DType | None, int]] = {}
        indices: dict[tuple[object, ...], int] = {}
        for value in values:
            assert value.shape is not None
            key = tuple([_number_of(dimension) for dimension in value.shape])
            index = indices.setdefault(key, len(self._shapes))
            if index == len(self._shapes):
                self._shapes.append(value.shape)
            self._types[value.name] = value.dtype, index

    def bound(self, binder: "_Binder", fixed: Mapping[str, Value]) -> "_BoundValues":
        """Return bound values, and those without symbolic lengths, by name."""
        return _BoundValues(fixed, self._types, list(map(binder.dimensions, self._shapes)))


@dataclass(frozen=True, slots=True, eq=False)
class _BoundValues(Mapping[str, Value]):
    """Values made on access, because most values of a repeated layer are never asked for."""

    fixed: Mapping[str, Value]
    types: Mapping[str, tuple[DType | None, int]]
    shapes: Sequence[Shape]

    def __getitem__(self, name: str) -> Value:
        found = self.types.get(name)
        if found is None:
            return self.fixed[name]
        return Value(name, found[0], self.shapes[found[1]])

    def __iter__(self) -> Iterator[str]:
        return chain(self.fixed, self.types)

    def __len__(self) -> int:
        return len(self.fixed) + len(self.types)


def _number_of(dimension: int | str | None) -> object:
    """Return a key for a dimension: the number of its expression if it is symbolic."""
    followed = length_of(dimension) if isinstance(dimension, int) else None
    return dimension if followed is None else (followed.number,)


@dataclass(frozen=True, slots=True)
class _Constants:
    """Constants of a template, split by whether they depend on lengths."""

    fixed: Mapping[str, Constant]
    open: Mapping[str, Constant]

    @staticmethod
    def of(constants: Mapping[str, Constant]) -> "_Constants":
        apart: tuple[dict[str, Constant], dict[str, Constant]] = ({}, {})
        for name, constant in constants.items():
            apart[depends_on_lengths(constant)][name] = constant
        return _Constants(*apart)

    def shared(self, held: "_Constants") -> "_Constants":
        """Take from another template the equal nodes and constants that depend on no length."""
        return _Constants(equal_constants(self.fixed, held.fixed), self.open)

    def bound(self, binder: "_Binder") -> dict[str, Constant]:
        return {**self.fixed, **{name: binder.constant(c) for name, c in self.open.items()}}


def _is_open(value: Value) -> bool:
    return value.shape is not None and any(map(is_length, value.shape))


def _has_length(node: Node) -> bool:
    return any(
        is_length(value)
        or (isinstance(value, tuple) and any(map(is_length, value)))
        or (
            isinstance(value, (Derived, Fill, SymbolicConstant, Mapped))
            and depends_on_lengths(value)
        )
        for part in (node, *node.fused)
        for value in part.attributes.values()
    )


@dataclass(frozen=True, slots=True)
class _Binder:
    """Replaces symbolic lengths by numbers."""

    trace: Trace
    numbers: Sequence[int]

    def length(self, length: int) -> int:
        followed = length_of(length)
        return length if followed is None else self.numbers[followed.number]

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple([self.length(length) for length in shape])

    def dimensions(self, shape: Shape) -> Shape:
        """Bind a shape that may also have symbols or unknown lengths."""
        return tuple([d if isinstance(d, str) or d is None else self.length(d) for d in shape])

    def node(self, node: Node) -> Node:
        attributes = {name: self.attribute(value) for name, value in node.attributes.items()}
        return replace(node, attributes=attributes, fused=tuple(map(self.node, node.fused)))

    def attribute(self, value: AttributeValue) -> AttributeValue:
        if isinstance(value, (Derived, Fill, SymbolicConstant, Mapped)):
            return self.constant(value)
        if isinstance(value, int):
            return self.length(value)
        if isinstance(value, tuple) and any(map(is_length, value)):
            return self.shape(cast("tuple[int, ...]", value))
        return value

    def constant(self, constant: Constant) -> Constant:
        """Bind the lengths of a constant; return it unchanged if it has none."""
        if not depends_on_lengths(constant):
            return constant
        shape = self.shape(constant.shape)
        if isinstance(constant, SymbolicConstant):
            numbers = [self.length(element) for element in constant.elements.flat]
            return Inline(np.array(numbers, constant.dtype.numpy).reshape(shape))
        if isinstance(constant, Scaled):
            return Scaled(self.constant(constant.source), self.constant(constant.factor))
        if isinstance(constant, Derived):
            sources = tuple(map(self.constant, constant.sources))
            compute = partial(_computed, constant, self.trace, self.numbers)
            return Derived(constant.dtype, shape, compute, sources, constant.recipe)
        return reshaped(constant, shape)


def _computed(constant: Derived, trace: Trace, numbers: Sequence[int]) -> Array:
    with trace.bound(numbers):
        return constant.compute()
