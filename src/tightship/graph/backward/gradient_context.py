"""Context in which a rule writes gradients: one forward node, and helpers to write nodes."""

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
"""Element types that have gradients, with ONNX's numbers."""

LOOKED_INTO_MAX = 64
"""Most elements of a constant around a body that the body's gradient may read."""

Rule = Callable[["GradientContext"], Iterator[tuple[int, str]]]
"""Function that yields wanted gradients of a node: (index of an input, its gradient)."""

Ends = Sequence[tuple[str, str]]
"""Values, each with a name for its gradient."""
GradientPath = Callable[[Graph, Ends, Sequence[str]], Graph]
"""Function that makes a graph of gradients from given ones: `differentiate.gradient_path`."""
ControlRule = Callable[["GradientContext", GradientPath], Iterator[tuple[str, str]]]
"""Rule of a node that runs graphs; yields (name of an operand, its gradient)."""


@dataclass(frozen=True, slots=True)
class GradientContext:
    """Forward node whose outputs have gradients.

    Attributes:
        tape: Tape that nodes are written to.
        node: Forward node.
        gradients: Gradients of its outputs in order, `""` if one has none.
        wanted: Values whose gradients lead to a requested one.
    """

    tape: Tape
    node: Node
    gradients: tuple[str, ...]
    wanted: Collection[str]

    @property
    def dy(self) -> str:
        """Gradient of the first output.

        Raises:
            GraphError: It has none; the gradient comes through another output.
        """
        if not self.gradients[0]:
            raise self.refusal("has no gradient for outputs after its first")
        return self.gradients[0]

    @property
    def y(self) -> str:
        """First output."""
        return self.node.outputs[0]

    def x(self, index: int = 0) -> str:
        """Return an input that must be present."""
        return self.node.inputs[index]

    def has(self, index: int) -> bool:
        """Whether the node has an input."""
        return index < len(self.node.inputs) and self.node.inputs[index] != ""

    def optional(self, index: int) -> str:
        """Return the name of an input, `""` if it is left out."""
        return self.node.inputs[index] if index < len(self.node.inputs) else ""

    def wants(self, index: int) -> bool:
        """Whether the gradient of an input is wanted."""
        return index < len(self.node.inputs) and self.node.inputs[index] in self.wanted

    def captures(self, bodies: Iterable[Graph]) -> tuple[str, ...]:
        """Return the captures of graphs whose gradients are wanted."""
        names = dict.fromkeys(name for body in bodies for name in body.captures)
        return tuple([name for name in names if name in self.wanted])

    def within(self, body: Graph, names: Iterable[str] = ()) -> Graph:
        """Give a graph of the node the types of its captures, and the small ones that are known."""
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
        """Return the element type and shape of a value.

        Raises:
            GraphError: They are not known before the run.
        """
        found = self.tape.types.get(name) or self.tape.type(name)
        if found is None:
            raise self.refusal(
                f"needs the shape of `{name}`, which is {self.tape.graph.value(name).shape}; give "
                "the shapes of the model's inputs, or have it not depend on data (as a Loop's "
                "iterations do if its count is not a constant)"
            )
        return found

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value."""
        return self.type(name)[1]

    def dtype(self, name: str) -> DType:
        """Return the element type of a value."""
        return self.type(name)[0]

    def refusal(self, reason: str) -> GraphError:
        """Make the error that says why a node's gradient cannot be written."""
        node = self.node
        return GraphError(
            f"The gradient of node `{node.name}` ({node.domain or 'ai.onnx'} {node.operator}, "
            f"opset {node.version}) {reason}."
        )

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute of the node."""
        return self.node.integer(name, default)

    def real(self, name: str, default: float) -> float:
        """Return a floating-point attribute of the node."""
        return self.node.number(name, default)

    def parameter(self, index: int, name: str) -> Array | None:
        """Return the elements of an input that shapes the node; None if it is left out.

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
        """Return axes from the attribute or an input; negative ones count from the end."""
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
        """Write an ONNX operator with one output; elementwise unless its shape is given."""
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
        """Write an operator of `DOMAIN` with the node's attributes and `more`."""
        attributes = {**self.node.attributes, **more}
        types = types_of(
            operator, [self.type(name) if name else None for name in inputs], attributes
        )
        kept = [kind if is_kept else None for kind, is_kept in zip(types, keep, strict=False)]
        version = self.node.version
        return self.tape.write(operator, inputs, kept, attributes, (DOMAIN, version))

    def cast(self, name: str, dtype: DType) -> str:
        """Convert a value to another float type, if it has not that one."""
        if self.dtype(name) is dtype:
            return name
        return self.op("Cast", name, dtype=dtype, attributes={"to": FLOATS[dtype]})

    def number(self, number: float, like: str) -> str:
        """Make a constant of rank 0 with the element type of a value."""
        return self.tape.number(number, self.dtype(like))

    def scaled(self, name: str, factor: float) -> str:
        """Multiply a value by a number."""
        return name if factor == 1 else self.op("Mul", name, self.number(factor, name))

    def reshaped(self, name: str, shape: Sequence[int]) -> str:
        """Reshape a value, if it has another shape."""
        if self.shape(name) == tuple(shape):
            return name
        return self.op(
            "Reshape", name, self.tape.integers(shape), shape=shape, attributes={"allowzero": 1}
        )

    def transposed(self, name: str, perm: Sequence[int]) -> str:
        """Permute the axes of a value."""
        have = self.shape(name)
        shape = [have[axis] for axis in perm]
        return self.op("Transpose", name, shape=shape, attributes={"perm": tuple(perm)})

    def expanded(self, name: str, shape: Sequence[int]) -> str:
        """Repeat a value along axes of length 1, if it has another shape."""
        if self.shape(name) == tuple(shape):
            return name
        return self.op("Expand", name, self.tape.integers(shape), shape=shape)

    def summed(self, name: str, axes: Sequence[int]) -> str:
        """Sum over axes, which stay as axes of length 1."""
        if not axes:
            return name
        shape = [1 if axis in axes else n for axis, n in enumerate(self.shape(name))]
        return self.op(
            "ReduceSum", name, self.tape.integers(axes), shape=shape, attributes={"keepdims": 1}
        )

    def summed_to(self, name: str, target: str) -> str:
        """Sum a gradient over the axes that `target` was broadcast along."""
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
