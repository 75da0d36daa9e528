"""Nodes of a graph under construction, for the frontends that write operators of ONNX."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.graph import Constant, DType, Inline, Node, Value
from tightship.graph.backward.operators import DOMAIN, types_of
from tightship.graph.constant import Array
from tightship.graph.followed import Followed
from tightship.graph.ir import AttributeValue
from tightship.graph.length import is_length, same_for_all

OPSET = 23
"""Of ONNX's own domain: the meaning of every operator that is written."""

Type = tuple[DType, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor of the graph."""

    name: str
    dtype: DType
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


@dataclass(slots=True)
class Writer:
    """What has been written of a graph."""

    nodes: list[Node] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    makers: dict[str, Node] = field(default_factory=dict)
    """The node that writes a value."""

    def define(self, stem: str, dtype: DType, shape: Sequence[int]) -> Operand:
        """A value with a name that no other has."""
        name, count = stem, 0
        while name in self.values:
            count += 1
            name = f"{stem}.{count}"
        operand = Operand(name, dtype, tuple(shape))
        self.values[name] = Value(name, dtype, operand.shape)
        return operand

    def operand(self, name: str) -> Operand:
        """A value of a static type that was defined."""
        value = self.values[name]
        assert value.dtype is not None, value
        return Operand(name, value.dtype, value.static_shape)

    def constant(self, stem: str, constant: Constant) -> Operand:
        """A value that is known."""
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
        """An operator of a domain, ONNX's own unless said, applied; None is an absent operand."""
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
        """A matrix, or a stack of them, before its last two axes were exchanged, and whether."""
        maker = self.makers.get(operand.name)
        if maker is None or maker.operator != "Transpose" or operand.rank < 2:
            return operand, False
        order = tuple(range(operand.rank))
        if maker.attributes.get("perm", order[::-1]) != (*order[:-2], order[-1], order[-2]):
            return operand, False
        return self.operand(maker.inputs[0]), True


@dataclass(frozen=True, slots=True)
class Site:
    """One operation of a foreign program being written.

    Attributes:
        writer: The graph under construction.
        stem: What values that are written are called.
        types: Of its results; None of those that are no tensors.
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
        """The first result, written by this operator."""
        return self.add(operator, (self.dtype, self.shape), *inputs, **attributes)

    def add(
        self,
        operator: str,
        type_: Type,
        *inputs: Operand | None,
        **attributes: AttributeValue,
    ) -> Operand:
        """A value of this type, written by this operator."""
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
        """The results of an operator of training; None where one is not kept."""
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
        """A value of the type of the operator's first input."""
        return self.add(operator, (first.dtype, first.shape), first, *others, **attributes)

    def held(self, array: Array) -> Operand:
        """A small constant."""
        array.flags.writeable = False
        return self.writer.constant(f"{self.stem}.held", Inline(array))

    def integers(self, *numbers: int) -> Operand:
        """A list of lengths, axes or positions."""
        if any(map(is_length, numbers)):
            return self._followed(DType.INT64, np.array(numbers, object))
        return self.held(np.array(numbers, np.int64))

    def _followed(self, dtype: DType, elements: NDArray[Any]) -> Operand:
        return self.writer.constant(f"{self.stem}.held", Followed(dtype, elements))

    def numbers(self, *numbers: float) -> Operand:
        """A list of factors."""
        return self.held(np.array(numbers, np.float32))

    def scalar(self, number: complex, dtype: DType) -> Operand:
        """A number of this element type, without dimensions."""
        if is_length(number):
            element = np.empty((), object)
            element[()] = number
            return self._followed(dtype, element)
        return self.held(np.array(number).astype(dtype.numpy))

    def cast(self, operand: Operand, dtype: DType) -> Operand:
        """The operand in this element type."""
        if operand.dtype is dtype:
            return operand
        return self.add("Cast", (dtype, operand.shape), operand, to=_NUMBERS[dtype])

    def reshaped(self, operand: Operand, shape: Sequence[int]) -> Operand:
        """The operand's elements under another shape."""
        if same_for_all(operand.shape, shape):
            return operand
        sizes = self.integers(*shape)
        return self.add("Reshape", (operand.dtype, tuple(shape)), operand, sizes, allowzero=1)

    def number_or_tensor(self, value: Operand | complex, dtype: DType) -> Operand:
        """An argument that may be a number, in this element type."""
        return self.cast(value, dtype) if isinstance(value, Operand) else self.scalar(value, dtype)


_NUMBERS = {
    DType.FLOAT32: 1, DType.UINT8: 2, DType.INT8: 3, DType.UINT16: 4, DType.INT16: 5,
    DType.INT32: 6, DType.INT64: 7, DType.BOOL: 9, DType.FLOAT16: 10, DType.FLOAT64: 11,
    DType.UINT32: 12, DType.UINT64: 13, DType.COMPLEX64: 14, DType.COMPLEX128: 15,
    DType.BFLOAT16: 16, DType.FLOAT8E4M3FN: 17, DType.FLOAT8E4M3FNUZ: 18, DType.FLOAT8E5M2: 19,
    DType.FLOAT8E5M2FNUZ: 20, DType.FLOAT8E8M0FNU: 24,
}  # fmt: skip
"""`to` of Cast: numbers of `TensorProto.DataType`."""


def axis_of(number: int, rank: int) -> int:
    """An axis counted from the front."""
    return number % max(rank, 1)
