"""Models built of operands."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from tightship.driver.client.file_pool import FilePool
from tightship.driver.types.elements import dtype_of, value_type
from tightship.driver.types.model import DataLocation, Lifetime, Operand, Operation
from tightship.driver.types.operand_type import OperandType, ValueType
from tightship.driver.types.per_channel import PerChannel
from tightship.errors import InputError, InputTypeError
from tightship.public_calls import public_call, public_methods

_PYTHON: dict[type, DTypeLike] = {bool: np.bool_, int: np.int32, float: np.float32}


@public_call
def channels_type(shape: Sequence[int], scales: Sequence[float], axis: int) -> ValueType:
    """Return the type of an int8 filter with a scale for each element along an axis.

    Convolutions of quantized images take such a filter, together with a bias of scale 0.

    Args:
        shape: Lengths of the filter.
        scales: A scale above 0 for each element along the axis.
        axis: The axis, from 0.

    Raises:
        InputError: The filter has no such axis.
    """
    if not 0 <= axis < len(shape):
        raise InputError(f"`axis` is {axis}; it must be from 0 to {len(shape) - 1}.")
    extra = PerChannel(axis, tuple(scales)).encoded()
    kind = OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL
    return ValueType(kind, tuple(shape), extra_params=extra)


@public_call
def tensor_type(
    dtype: DTypeLike, shape: Sequence[int] | None, scale: float = 0.0, zero_point: int = 0
) -> ValueType:
    """Return the type of a tensor; small integers are quantized, by default with scale 1.

    Args:
        dtype: Type of the elements.
        shape: Lengths of axes, 0 if unknown until a request gives or implies them; None for an
            unknown rank.
        scale: Scale of quantized elements; 0.0 for 1.
        zero_point: Zero point of quantized elements.

    Raises:
        DriverError: GENERAL_FAILURE: NNAPI has no type for these elements.
        InputTypeError: `dtype` is not a type of elements.
    """
    try:
        np.dtype(dtype)
    except (TypeError, ValueError):
        raise InputTypeError(
            f"`dtype` is {dtype!r}; give a type of NumPy, as `np.float32`."
        ) from None
    found = value_type(dtype, (0,) if shape is None else shape, "operand")
    dimensions = () if shape is None else found.dimensions
    return replace(found, dimensions=dimensions, scale=scale or found.scale, zero_point=zero_point)


@public_methods
class ModelBuilder:
    """Operands and operations of a subgraph, added in the order of their execution.

    Methods that add an operand return its index. `Client.prepare` takes the builder of the main
    subgraph. Constants of up to 128 bytes travel in the message; larger ones in a common pool, or
    in a file of the client.

    Attributes:
        constants: Bytes of constant operands, by index.
        pools: Identifiers of the pools of operands in files, by index.
        subgraphs: Builders of operands that are subgraphs, by index.
    """

    def __init__(self) -> None:
        self.operands: list[Operand] = []
        self.operations: list[Operation] = []
        self.constants: dict[int, bytes] = {}
        self.pools: dict[int, int] = {}
        self.subgraphs: dict[int, ModelBuilder] = {}

    def input(self, kind: ValueType) -> int:
        """Add the next input."""
        return self._add(Operand(kind, Lifetime.SUBGRAPH_INPUT))

    def output(self, kind: ValueType) -> int:
        """Add the next output."""
        return self._add(Operand(kind, Lifetime.SUBGRAPH_OUTPUT))

    def temporary(self, kind: ValueType) -> int:
        """Add a value that one operation writes for others."""
        return self._add(Operand(kind, Lifetime.TEMPORARY_VARIABLE))

    def constant(self, value: ArrayLike, kind: ValueType | None = None) -> int:
        """Add a constant; Python numbers are scalars: INT32, FLOAT32 or BOOL.

        Args:
            value: Elements.
            kind: Type; None for that of the elements.
        """
        dtype = _PYTHON.get(type(value)) if kind is None else dtype_of(kind)
        array = np.ascontiguousarray(value, dtype).reshape(np.shape(value))
        found = tensor_type(array.dtype, array.shape) if kind is None else kind
        index = self._add(Operand(found, Lifetime.CONSTANT_COPY))
        self.constants[index] = array.tobytes()
        return index

    def constant_in(self, pool: FilePool, offset_bytes: int, kind: ValueType) -> int:
        """Add a constant in a file, which is not copied before it is packed.

        Args:
            pool: The file.
            offset_bytes: Offset of the constant in it, in bytes.
            kind: Type of the constant.
        """
        location = DataLocation(0, offset_bytes, kind.size_bytes)
        index = self._add(Operand(kind, Lifetime.CONSTANT_REFERENCE, location))
        self.pools[index] = pool.pool
        return index

    def absent(self, kind: ValueType) -> int:
        """Add an optional argument without a value."""
        return self._add(Operand(kind, Lifetime.NO_VALUE))

    def subgraph(self, inner: "ModelBuilder") -> int:
        """Add another subgraph, as an argument of WHILE and IF."""
        index = self._add(Operand(ValueType(OperandType.SUBGRAPH), Lifetime.SUBGRAPH))
        self.subgraphs[index] = inner
        return index

    def operation(self, number: int, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Add an operation.

        Args:
            number: NNAPI's number of its type.
            inputs: Numbers of its operands, as `input`, `constant` and the like return them.
            outputs: Numbers of its results.
        """
        self.operations.append(Operation(number, tuple(inputs), tuple(outputs)))

    def _add(self, operand: Operand) -> int:
        self.operands.append(operand)
        return len(self.operands) - 1
