"""Where a rule writes gradients: one forward node, and what it may be written with."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightship.errors import GraphError
from tightship.graph.backward.operators import DOMAIN, Attributes, Type, types_of
from tightship.graph.backward.tape import Tape
from tightship.graph.constant import Array
from tightship.graph.ir import AttributeValue, Graph, Node
from tightship.graph.layout import DType, element_count

FLOATS = {DType.FLOAT32: 1, DType.FLOAT16: 10, DType.FLOAT64: 11, DType.BFLOAT16: 16}
"""Element types that have gradients, and ONNX's numbers of them."""

LOOKED_INTO_MAX = 64
"""Elements of a constant around a body that the gradient of the body may look into."""

Rule = Callable[["GradientContext"], Iterator[tuple[int, str]]]
"""Writes what is wanted of a node's gradients: (index of an input, its gradient)."""

Ends = Sequence[tuple[str, str]]
"""Values, each with a name for its gradient."""
GradientPath = Callable[[Graph, Ends, Sequence[str]], Graph]
"""A graph of gradients from given ones: `differentiate.gradient_path`."""
ControlRule = Callable[["GradientContext", GradientPath], Iterator[tuple[str, str]]]
"""The same of a node that runs graphs: (name of an operand, its gradient)."""


@dataclass(frozen=True, slots=True)
class GradientContext:
    """A forward node whose outputs have gradients.

    Attributes:
        tape: What is written.
        node: The forward node.
        gradients: Of its outputs, positional, `""` where one has none.
        wanted: Values whose gradients lead to one that was asked for.
    """

    tape: Tape
    node: Node
    gradients: tuple[str, ...]
    wanted: Collection[str]

    @property
    def dy(self) -> str:
        """The gradient of the first output.

        Raises:
            GraphError: It has none; the gradient comes through another output.
        """
        if not self.gradients[0]:
            raise self.refusal("has no gradient for outputs after its first")
        return self.gradients[0]

    @property
    def y(self) -> str:
        """The first output."""
        return self.node.outputs[0]

    def x(self, index: int = 0) -> str:
        """An input that must be there."""
        return self.node.inputs[index]

    def has(self, index: int) -> bool:
        """Whether the node gives an input."""
        return index < len(self.node.inputs) and self.node.inputs[index] != ""

    def optional(self, index: int) -> str:
        """The name of an input, `""` where it is absent."""
        return self.node.inputs[index] if index < len(self.node.inputs) else ""

    def wants(self, index: int) -> bool:
        """Whether the gradient of an input is wanted."""
        return index < len(self.node.inputs) and self.node.inputs[index] in self.wanted

    def captures(self, bodies: Iterable[Graph]) -> tuple[str, ...]:
        """What graphs read of what is around the node, where its gradient is wanted."""
        names = dict.fromkeys(name for body in bodies for name in body.captures)
        return tuple([name for name in names if name in self.wanted])

    def within(self, body: Graph, names: Iterable[str] = ()) -> Graph:
        """A graph of the node, with types of what is around it, and few elements that are known.

        Args:
            body: The graph.
            names: What is around it besides what it captures.
        """
        around = (*body.captures, *names)
        types = {name: self.tape.graph.value(name) for name in around}
        constants = {name: self.tape.constant(name) for name in around}
        known = {
            name: constant
            for name, constant in constants.items()
            if constant is not None and element_count(constant.shape) <= LOOKED_INTO_MAX
        }
        return replace(body, values={**body.values, **types}, known={**body.known, **known})

    def type(self, name: str) -> Type:
        """Element type and shape of a value.

        Raises:
            GraphError: They are not known before the run.
        """
        found = self.tape.types.get(name) or self.tape.type(name)
        if found is None:
            raise self.refusal(
                f"needs the shape of `{name}`, which is {self.tape.graph.value(name).shape}; give "
                "the shapes of the model's inputs, or have it not depend on data, as the "
                "iterations of a Loop do whose count is not a constant"
            )
        return found

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a value."""
        return self.type(name)[1]

    def dtype(self, name: str) -> DType:
        """The element type of a value."""
        return self.type(name)[0]

    def refusal(self, reason: str) -> GraphError:
        """The error that says why a node's gradient cannot be written."""
        node = self.node
        return GraphError(
            f"The gradient of node `{node.name}` ({node.domain or 'ai.onnx'} {node.operator}, "
            f"opset {node.version}) {reason}."
        )

    def integer(self, name: str, default: int) -> int:
        """An integer attribute of the node."""
        value = self.node.attributes.get(name, default)
        assert isinstance(value, int), (self.node.name, name, value)
        return value

    def real(self, name: str, default: float) -> float:
        """A floating-point attribute of the node."""
        value = self.node.attributes.get(name, default)
        assert isinstance(value, int | float), (self.node.name, name, value)
        return float(value)

    def parameter(self, index: int, name: str) -> Array | None:
        """The elements of an input that shapes the node; None where it is absent.

        Raises:
            GraphError: It is computed by the model.
        """
        if not self.has(index):
            return None
        constant = self.tape.constant(self.x(index))
        if constant is None:
            raise self.refusal(f"needs `{name}` to be a constant; `{self.x(index)}` is computed")
        return constant.array()

    def axes(self, index: int) -> tuple[int, ...] | None:
        """Axes from the attribute, or from an input; negative ones count from the end."""
        given = self.node.attributes.get("axes")
        if given is not None:
            assert isinstance(given, tuple)
            return tuple(int(axis) for axis in given)
        array = self.parameter(index, "axes")
        return None if array is None else tuple(array.reshape(-1).tolist())

    def op(
        self,
        operator: str,
        *inputs: str,
        shape: Sequence[int] | None = None,
        dtype: DType | None = None,
        attributes: Attributes | None = None,
    ) -> str:
        """Write an operator of ONNX with one output; elementwise unless its shape is given."""
        kind, first = self.type(inputs[0])
        if shape is None:
            shape = first
            for name in inputs[1:]:
                other = self.type(name)[1]
                if other != shape:
                    shape = np.broadcast_shapes(shape, other)
        types = [(dtype or kind, tuple(shape))]
        return self.tape.write(operator, inputs, types, attributes or {})[0]

    def own(
        self, operator: str, *inputs: str, keep: Sequence[bool] = (True,), **more: AttributeValue
    ) -> tuple[str, ...]:
        """Write an operator of `DOMAIN` with the node's attributes and `more`.

        Args:
            operator: Its name.
            inputs: Its operands.
            keep: For each output whether it is wanted; the rest is left out.
            more: Attributes besides those of the forward node.
        """
        attributes = {**self.node.attributes, **more}
        types = types_of(
            operator, [self.type(name) if name else None for name in inputs], attributes
        )
        kept = [kind if is_kept else None for kind, is_kept in zip(types, keep, strict=False)]
        version = self.node.version
        return self.tape.write(operator, inputs, kept, attributes, (DOMAIN, version))

    def cast(self, name: str, dtype: DType) -> str:
        """A value with elements of another float type; itself where it has them."""
        if self.dtype(name) is dtype:
            return name
        return self.op("Cast", name, dtype=dtype, attributes={"to": FLOATS[dtype]})

    def number(self, number: float, like: str) -> str:
        """A constant of rank 0 with the element type of a value."""
        return self.tape.number(number, self.dtype(like))

    def scaled(self, name: str, factor: float) -> str:
        """A value times a number."""
        return name if factor == 1 else self.op("Mul", name, self.number(factor, name))

    def reshaped(self, name: str, shape: Sequence[int]) -> str:
        """A value under another shape; itself where it has it."""
        if self.shape(name) == tuple(shape):
            return name
        return self.op(
            "Reshape", name, self.tape.integers(shape), shape=shape, attributes={"allowzero": 1}
        )

    def transposed(self, name: str, perm: Sequence[int]) -> str:
        """A value with its axes permuted."""
        have = self.shape(name)
        shape = [have[axis] for axis in perm]
        return self.op("Transpose", name, shape=shape, attributes={"perm": tuple(perm)})

    def expanded(self, name: str, shape: Sequence[int]) -> str:
        """A value repeated along axes of length 1; itself where it has the shape."""
        if self.shape(name) == tuple(shape):
            return name
        return self.op("Expand", name, self.tape.integers(shape), shape=shape)

    def summed(self, name: str, axes: Sequence[int]) -> str:
        """Sums over axes, which stay as axes of length 1."""
        if not axes:
            return name
        shape = [1 if axis in axes else n for axis, n in enumerate(self.shape(name))]
        return self.op(
            "ReduceSum", name, self.tape.integers(axes), shape=shape, attributes={"keepdims": 1}
        )

    def summed_to(self, name: str, target: str) -> str:
        """The gradient of a value that was repeated: summed where it was."""
        have, shape = self.type(name)[1], self.type(target)[1]
        if have == shape:
            return name
        lead = len(have) - len(shape)
        axes = [
            axis
            for axis, length in enumerate(have)
            if axis < lead or (shape[axis - lead] == 1 and length != 1)
        ]
        return self.reshaped(self.summed(name, axes), shape)
