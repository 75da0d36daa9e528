"""Models built operand by operand."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from tightship.driver.client.file_pool import FilePool
from tightship.driver.types.elements import dtype_of, value_type
from tightship.driver.types.model import DataLocation, Lifetime, Operand, Operation
from tightship.driver.types.operand_type import OperandType, ValueType
from tightship.driver.types.per_channel import PerChannel
from tightship.public_calls import public_call, public_methods

_PYTHON: dict[type, DTypeLike] = {bool: np.bool_, int: np.int32, float: np.float32}


@public_call
def channels_type(shape: Sequence[int], scales: Sequence[float], axis: int) -> ValueType:
    """The type of a filter of int8 that has a scale for each element along an axis.

    Convolutions of quantized images take such a filter, beside a bias of scale 0.
    """
    extra = PerChannel(axis, tuple(scales)).encoded()
    kind = OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL
    return ValueType(kind, tuple(shape), extra_params=extra)


@public_call
def tensor_type(
    dtype: DTypeLike, shape: Sequence[int] | None, scale: float = 0.0, zero_point: int = 0
) -> ValueType:
    """The type of a tensor; small integers are quantized, with scale 1 unless it is given.

    Args:
        dtype: Of its elements.
        shape: A length of 0 is left open, to be said by each request or deduced from it; None
            leaves the number of axes open.
        scale: Of quantized elements.
        zero_point: Likewise.

    Raises:
        DriverError: GENERAL_FAILURE: NNAPI has no such elements.
    """
    found = value_type(dtype, (0,) if shape is None else shape, "operand")
    dimensions = () if shape is None else found.dimensions
    return replace(found, dimensions=dimensions, scale=scale or found.scale, zero_point=zero_point)


@public_methods
class ModelBuilder:
    """Operands and operations of a subgraph, added in the order in which they run.

    Whatever adds an operand returns its index. `Client.prepare` takes the builder of the main
    subgraph. Constants of up to 128 bytes travel in the message; larger ones are gathered in one
    pool, or lie in a file of the client's.

    Attributes:
        constants: Bytes of constant operands, by index.
        pools: Numbers of the pools that operands lie in, by index.
        subgraphs: What operands that are subgraphs are, by index.
    """

    def __init__(self) -> None:
        self.operands: list[Operand] = []
        self.operations: list[Operation] = []
        self.constants: dict[int, bytes] = {}
        self.pools: dict[int, int] = {}
        self.subgraphs: dict[int, ModelBuilder] = {}

    def input(self, kind: ValueType) -> int:
        """An input; they are in the order in which they are added."""
        return self._add(Operand(kind, Lifetime.SUBGRAPH_INPUT))

    def output(self, kind: ValueType) -> int:
        """An output; likewise."""
        return self._add(Operand(kind, Lifetime.SUBGRAPH_OUTPUT))

    def temporary(self, kind: ValueType) -> int:
        """What one operation writes for others."""
        return self._add(Operand(kind, Lifetime.TEMPORARY_VARIABLE))

    def constant(self, value: ArrayLike, kind: ValueType | None = None) -> int:
        """A constant; Python's numbers are scalars: INT32, FLOAT32 or BOOL.

        Args:
            value: Its elements.
            kind: Its type; what those of the elements are called if None.
        """
        dtype = _PYTHON.get(type(value)) if kind is None else dtype_of(kind)
        array = np.ascontiguousarray(value, dtype).reshape(np.shape(value))
        found = tensor_type(array.dtype, array.shape) if kind is None else kind
        index = self._add(Operand(found, Lifetime.CONSTANT_COPY))
        self.constants[index] = array.tobytes()
        return index

    def constant_in(self, pool: FilePool, offset_bytes: int, kind: ValueType) -> int:
        """A constant that lies in a file, from where it is not copied before it is packed."""
        location = DataLocation(0, offset_bytes, kind.size_bytes)
        index = self._add(Operand(kind, Lifetime.CONSTANT_REFERENCE, location))
        self.pools[index] = pool.pool
        return index

    def absent(self, kind: ValueType) -> int:
        """An optional argument that is left out."""
        return self._add(Operand(kind, Lifetime.NO_VALUE))

    def subgraph(self, inner: "ModelBuilder") -> int:
        """Another subgraph, as an argument of WHILE and IF."""
        index = self._add(Operand(ValueType(OperandType.SUBGRAPH), Lifetime.SUBGRAPH))
        self.subgraphs[index] = inner
        return index

    def operation(self, number: int, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """An operation, by NNAPI's number of it."""
        self.operations.append(Operation(number, tuple(inputs), tuple(outputs)))

    def _add(self, operand: Operand) -> int:
        self.operands.append(operand)
        return len(self.operands) - 1
