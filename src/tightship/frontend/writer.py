"""Graph under construction, for frontends that write ONNX operators."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.graph import Constant, DType, Inline, Node, Value
from tightship.graph.backward.operators import DOMAIN, types_of
from tightship.graph.constant import Array
from tightship.graph.ir import AttributeValue
from tightship.graph.length import is_length, same_for_all
from tightship.graph.symbolic import SymbolicConstant

OPSET = 23
"""Opset of ONNX's own domain, for every operator that is written."""

Type = tuple[DType, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Operand:
    """Tensor of the graph."""

    name: str
    dtype: DType
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


@dataclass(slots=True)
class Writer:
    """Nodes, values and constants written so far."""

    nodes: list[Node] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    makers: dict[str, Node] = field(default_factory=dict)
    """Node that writes each value."""

    def define(self, stem: str, dtype: DType, shape: Sequence[int]) -> Operand:
        """Add a value under a new name that begins with `stem`."""
        name, count = stem, 0
        while name in self.values:
            count += 1
            name = f"{stem}.{count}"
        operand = Operand(name, dtype, tuple(shape))
        self.values[name] = Value(name, dtype, operand.shape)
        return operand

    def operand(self, name: str) -> Operand:
        """Return a defined value of static type."""
        value = self.values[name]
        assert value.dtype is not None, value
        return Operand(name, value.dtype, value.static_shape)

    def constant(self, stem: str, constant: Constant) -> Operand:
        """Add a constant."""
        operand = self.define(stem, constant.dtype, constant.shape)
        self.constants[operand.name] = constant
        return operand

    def node(
        self,
        operator: str,
        inputs: Sequence[Operand | None],
        outputs: Sequence[Operand | None],
        attributes: Mapping[str, AttributeValue],
        domain: str = "",
    ) -> None:
        """Add a node of ONNX's or another domain; None is an absent operand."""
        first = next(output.name for output in outputs if output is not None)
        names = [operand.name if operand else "" for operand in inputs]
        while names and not names[-1]:
            names.pop()
        written = tuple(output.name if output else "" for output in outputs)
        name = f"{operator}_{first}"
        node = Node(name, operator, tuple(names), written, attributes, domain, OPSET)
        self.nodes.append(node)
        self.makers.update((output, node) for output in written if output)

    def unturned(self, operand: Operand) -> tuple[Operand, bool]:
        """Undo an exchange of the last two axes; return the operand and whether there was one."""
        maker = self.makers.get(operand.name)
        if maker is None or maker.operator != "Transpose" or operand.rank < 2:
            return operand, False
        order = tuple(range(operand.rank))
        if maker.attributes.get("perm", order[::-1]) != (*order[:-2], order[-1], order[-2]):
            return operand, False
        return self.operand(maker.inputs[0]), True


@dataclass(frozen=True, slots=True)
class TranslationContext:
    """Operation of a foreign program that is being written.

    Attributes:
        writer: Graph under construction.
        stem: Prefix of the names of new values.
        types: Types of its results; None for those that are not tensors.
    """

    writer: Writer
    stem: str
    types: tuple[Type | None, ...]

    @property
    def dtype(self) -> DType:
        """Element type of the first result."""
        assert self.types[0] is not None
        return self.types[0][0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first result."""
        assert self.types[0] is not None
        return self.types[0][1]

    def result(
        self, operator: str, *inputs: Operand | None, **attributes: AttributeValue
    ) -> Operand:
        """Write a node that computes the first result."""
        return self.add(operator, (self.dtype, self.shape), *inputs, **attributes)

    def add(
        self,
        operator: str,
        type_: Type,
        *inputs: Operand | None,
        **attributes: AttributeValue,
    ) -> Operand:
        """Write a node that computes a value of this type."""
        output = self.writer.define(self.stem, *type_)
        self.writer.node(operator, inputs, (output,), attributes)
        return output

    def own(
        self,
        operator: str,
        inputs: Sequence[Operand | None],
        attributes: Mapping[str, AttributeValue],
        keep: Sequence[bool] = (True,),
    ) -> tuple[Operand | None, ...]:
        """Write an operator of the training domain; return its results, None for those not kept."""
        given = [None if each is None else (each.dtype, each.shape) for each in inputs]
        types = types_of(operator, given, attributes)
        outputs = tuple(
            self.writer.define(self.stem, *type_) if is_kept else None
            for type_, is_kept in zip(types, keep, strict=False)
        )
        if any(outputs):
            self.writer.node(operator, inputs, outputs, attributes, DOMAIN)
        return outputs

    def like(
        self, operator: str, first: Operand, *others: Operand, **attributes: AttributeValue
    ) -> Operand:
        """Write a node whose result has the type of its first input."""
        return self.add(operator, (first.dtype, first.shape), first, *others, **attributes)

    def held(self, array: Array) -> Operand:
        """Add a small constant, which becomes read-only."""
        array.flags.writeable = False
        return self.writer.constant(f"{self.stem}.held", Inline(array))

    def integers(self, *numbers: int) -> Operand:
        """Add a constant list of lengths, axes or positions."""
        if any(map(is_length, numbers)):
            return self._followed(DType.INT64, np.array(numbers, object))
        return self.held(np.array(numbers, np.int64))

    def _followed(self, dtype: DType, elements: NDArray[Any]) -> Operand:
        return self.writer.constant(f"{self.stem}.held", SymbolicConstant(dtype, elements))

    def numbers(self, *numbers: float) -> Operand:
        """Add a constant list of float32 numbers."""
        return self.held(np.array(numbers, np.float32))

    def scalar(self, number: complex, dtype: DType) -> Operand:
        """Add a scalar constant of this element type."""
        if is_length(number):
            element = np.empty((), object)
            element[()] = number
            return self._followed(dtype, element)
        return self.held(np.array(number).astype(dtype.numpy))

    def cast(self, operand: Operand, dtype: DType) -> Operand:
        """Convert an operand to this element type."""
        if operand.dtype is dtype:
            return operand
        return self.add("Cast", (dtype, operand.shape), operand, to=_NUMBERS[dtype])

    def reshaped(self, operand: Operand, shape: Sequence[int]) -> Operand:
        """Reshape an operand."""
        if same_for_all(operand.shape, shape):
            return operand
        sizes = self.integers(*shape)
        return self.add("Reshape", (operand.dtype, tuple(shape)), operand, sizes, allowzero=1)

    def number_or_tensor(self, value: Operand | complex, dtype: DType) -> Operand:
        """Convert a number or tensor to an operand of this element type."""
        return self.cast(value, dtype) if isinstance(value, Operand) else self.scalar(value, dtype)


_NUMBERS = {
    DType.FLOAT32: 1, DType.UINT8: 2, DType.INT8: 3, DType.UINT16: 4, DType.INT16: 5,
    DType.INT32: 6, DType.INT64: 7, DType.BOOL: 9, DType.FLOAT16: 10, DType.FLOAT64: 11,
    DType.UINT32: 12, DType.UINT64: 13, DType.COMPLEX64: 14, DType.COMPLEX128: 15,
    DType.BFLOAT16: 16, DType.FLOAT8E4M3FN: 17, DType.FLOAT8E4M3FNUZ: 18, DType.FLOAT8E5M2: 19,
    DType.FLOAT8E5M2FNUZ: 20, DType.FLOAT8E8M0FNU: 24,
}  # fmt: skip
"""Numbers of `TensorProto.DataType`, the values of `to` in Cast."""


def axis_of(number: int, rank: int) -> int:
    """Return an axis counted from the front."""
    return number % max(rank, 1)
