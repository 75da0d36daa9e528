"""Propagates symbolic lengths through a graph of known shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from tightship.engine.kernels import evaluate
from tightship.engine.lower.passes.fold_constants import recipe_of
from tightship.engine.template.values import Array, Evaluate
from tightship.graph import Constant, Derived, DType, Fill, Graph, Node, Value
from tightship.graph.length import Trace, is_length, value_of
from tightship.graph.operands import Operands, misfit
from tightship.graph.operators import body
from tightship.graph.operators.shapes.shape_context import (
    NoRuleError,
    Rule,
    Shape,
    ShapeContext,
    product,
)
from tightship.graph.symbolic import SymbolicConstant, depends_on_lengths

ELEMENTS_MAX = 256
"""Most elements of a constant that is examined for lengths."""


@dataclass(slots=True)
class Retyper:
    """Walk over a graph's nodes that gives symbolic shapes to values that depend on one."""

    graph: Graph
    trace: Trace
    values: dict[str, Value] = field(default_factory=dict)
    known: dict[str, Constant] = field(default_factory=dict)
    _elements: dict[str, Array | None] = field(default_factory=dict)

    def retyped(self, inputs: Mapping[str, Shape]) -> Graph:
        """Return the graph for these input shapes, which contain symbolic lengths.

        Raises:
            NoRuleError: An operator that depends on one has no rule.
        """
        for name, shape in inputs.items():
            if any(map(is_length, shape)):
                self.values[name] = replace(self.graph.value(name), shape=shape)
        for node in self.graph.nodes:
            self._retype(node)
        return replace(
            self.graph,
            values={**self.graph.values, **self.values},
            known={**self.graph.known, **self.known},
        )

    def _retype(self, node: Node) -> None:
        if node.subgraphs:
            raise NoRuleError
        if not any(name in self.values or name in self.known for name in node.inputs):
            return
        rule: Rule | None = body("shape", node.operator, node.domain)
        if rule is None:
            raise NoRuleError
        context = ShapeContext(
            node,
            tuple([self._shape(name) if name else None for name in node.inputs]),
            tuple([self._flat(name) if name else None for name in node.inputs]),
            tuple([self._constant(name) if name else None for name in node.inputs]),
        )
        if misfit(node.operator, _operands(node, context)) is not None:
            raise NoRuleError
        shapes = rule(context)
        for name, shape in zip(node.outputs, shapes, strict=False):
            if name:
                self._define(name, shape)
        if any(node.outputs[len(shapes) :]):
            raise NoRuleError
        if all(name in self.graph.known for name in node.outputs):
            self._define_known(node, context)

    def _define(self, name: str, shape: Shape) -> None:
        before = self.graph.value(name)
        if not before.is_static or before.static_shape != tuple(map(value_of, shape)):
            raise NoRuleError
        if any(map(is_length, shape)):
            self.values[name] = replace(before, shape=shape)

    def _define_known(self, node: Node, context: ShapeContext) -> None:
        """Derive the elements of a node's outputs from known inputs."""
        (name,) = node.outputs
        before = self.graph.known[name]
        if isinstance(before, Fill):
            if name in self.values:
                shape = self.values[name].static_shape
                self.known[name] = Fill(before.value, shape)
            return
        elements = self._evaluated(node, context)
        if elements is None:
            self.known[name] = self._computed(node)
            return
        if [value_of(e) for e in elements.flat] != before.array().reshape(-1).tolist():
            raise NoRuleError
        if any(map(is_length, elements.flat)):
            self.known[name] = SymbolicConstant(before.dtype, elements)

    def _evaluated(self, node: Node, context: ShapeContext) -> Array | None:
        if node.operator == "Shape":
            start, end = context.integer("start", 0), context.integer("end", len(context.shape()))
            return _vector(context.shape()[start:end])
        if node.operator == "Size":
            return _shaped([product(context.shape())], ())
        arrays = [self._array(name) for name in node.inputs if name]
        evaluator: Evaluate | None = body("lengths", node.operator)
        if evaluator is None or any(array is None for array in arrays):
            return None
        try:
            found = evaluator(context, [array for array in arrays if array is not None])
        except NoRuleError:
            return None
        result = np.empty(np.shape(found), object)
        result[...] = found
        return result

    def _computed(self, node: Node) -> Constant:
        """Make a constant that is computed from others once lengths are bound."""
        operands = [self._constant(name) if name else None for name in node.inputs]
        types = [self.values.get(name) or self.graph.value(name) for name in node.outputs]
        if any(operand is None for operand, name in zip(operands, node.inputs, strict=True)
               if name):  # fmt: skip
            raise NoRuleError
        return Derived(
            self.graph.known[node.outputs[0]].dtype,
            types[0].static_shape,
            partial(_evaluated, node, tuple(operands), tuple(types)),
            tuple(operand for operand in operands if operand is not None),
            recipe_of(node, 0),
        )

    def _constant(self, name: str) -> Constant | None:
        return self.known.get(name) or self.graph.constant(name)

    def _shape(self, name: str) -> Shape | None:
        value = self.values.get(name) or self.graph.value(name)
        return value.static_shape if value.is_static else None

    def _flat(self, name: str) -> tuple[int, ...] | None:
        array = self._array(name)
        return None if array is None else tuple(array.flat)

    def _array(self, name: str) -> Array | None:
        """Return the elements of a small integer constant; None if they are unknown."""
        if name not in self._elements:
            self._elements[name] = _elements_of(self._constant(name))
        return self._elements[name]


def _operands(node: Node, context: ShapeContext) -> Operands:
    """Make operands whose symbolic lengths, once compared, become conditions of the template."""
    return Operands(node.inputs, context.shapes, node.attributes, node.version, len(node.outputs))


def _evaluated(node: Node, operands: Sequence[Constant | None], types: Sequence[Value]) -> Array:
    arrays = [None if operand is None else operand.array() for operand in operands]
    found = evaluate(node, arrays, types)[0]
    assert isinstance(found, np.ndarray)
    return found


def _elements_of(constant: Constant | None) -> Array | None:
    if isinstance(constant, SymbolicConstant):
        return constant.elements
    if constant is None or constant.dtype not in (DType.INT64, DType.INT32, DType.BOOL):
        return None
    if depends_on_lengths(constant) or np.prod(constant.shape, initial=1) > ELEMENTS_MAX:
        return None
    array = constant.array()
    return _shaped(array.reshape(-1).tolist(), array.shape)


def _vector(elements: Sequence[int]) -> Array:
    return _shaped(elements, (len(elements),))


def _shaped(elements: Sequence[int], shape: tuple[int, ...]) -> Array:
    """Make an array of objects that NumPy does not unpack."""
    flat = np.empty(len(elements), object)
    for index, element in enumerate(elements):
        flat[index] = element
    return flat.reshape(shape)
