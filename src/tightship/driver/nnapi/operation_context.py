"""One operation during translation: its arguments, checks and results."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tightship.driver.nnapi.constants import Constants
from tightship.driver.nnapi.emission import Emission, Tensor
from tightship.driver.nnapi.given import clipped
from tightship.driver.nnapi.operation_type import FusedActivation, operation_name
from tightship.driver.types.dimensions import is_specified
from tightship.driver.types.model import Lifetime, Operand, Operation
from tightship.driver.types.operand_type import OperandType, ValueType
from tightship.driver.types.per_channel import PerChannel, per_channel_of
from tightship.driver.types.status import ErrorStatus, failure, invalid
from tightship.errors import DriverError
from tightship.graph import DType
from tightship.graph.constant import Array

QUANTIZED = frozenset({OperandType.TENSOR_QUANT8_ASYMM, OperandType.TENSOR_QUANT8_ASYMM_SIGNED})
FLOATS = frozenset({OperandType.TENSOR_FLOAT32, OperandType.TENSOR_FLOAT16})
NUMBERS = FLOATS | QUANTIZED
"""Types of tensors that stand for real numbers."""

_FLOAT32_NUMBER, _FLOAT16_NUMBER = 1, 10  # arguments of `Cast`


class OpenDimensionsError(DriverError):
    """An operation reads an operand whose dimensions only a request determines."""

    def __init__(self, message: str) -> None:
        super().__init__(message, status=ErrorStatus.GENERAL_FAILURE)


@dataclass(frozen=True, slots=True)
class OperationContext:
    """Operation to translate, with the operands before it.

    Attributes:
        tensors: Values of the graph by operand, without those of unknown dimensions.
    """

    position: int
    operation: Operation
    operands: tuple[Operand, ...]
    constants: Constants
    tensors: Mapping[int, Tensor]
    emission: Emission

    @property
    def input_count(self) -> int:
        """Number of inputs."""
        return len(self.operation.inputs)

    @property
    def output_type(self) -> ValueType:
        """Declared type of the first output."""
        return self.operands[self.operation.outputs[0]].value_type

    @property
    def declared_shape(self) -> tuple[int, ...] | None:
        """Shape of the first output, if the model declares all of it."""
        shape = self.output_type.dimensions
        return shape if is_specified(shape, is_scalar=self.output_type.is_scalar) else None

    def is_constant(self, position: int) -> bool:
        """Whether an argument is a constant of the model."""
        return self.constants.constant(self._operand(position)) is not None

    def check_count(self, *counts: int) -> None:
        """Check that the number of inputs is one of `counts` and that there is one output."""
        if self.input_count not in counts:
            allowed = " or ".join(map(str, counts))
            raise self.broken(f"it has {self.input_count} inputs; NNAPI requires {allowed}")
        if len(self.operation.outputs) != 1:
            raise self.broken(f"it has {len(self.operation.outputs)} outputs; NNAPI requires 1")

    def type_of(self, position: int) -> ValueType:
        """Return the declared type of an argument."""
        return self._operand(position).value_type

    def tensor(self, position: int, types: Collection[int] = NUMBERS) -> Tensor:
        """Return an argument in its stored type, checked to be one of `types`."""
        operand_type = self.type_of(position).operand_type
        if operand_type not in types:
            raise self.uncovered(f"{self.name_of(position)} is a {OperandType(operand_type).name}")
        found = self.tensors.get(self.operation.inputs[position])
        if self._operand(position).lifetime == Lifetime.NO_VALUE:
            raise self.broken(f"{self.name_of(position)} has no value, and is not optional")
        if found is None:
            raise self.unsized(position)
        return found

    def real(self, position: int, order: tuple[int, ...] = ()) -> Tensor:
        """Return an argument in float32; its type, but not its scale, must be the first input's.

        Args:
            position: Position of the argument.
            order: Axis `i` of the result is axis `order[i]`; empty to keep the order.
        """
        tensor = self.tensor(position)
        value_type, first = self.type_of(position), self.type_of(0)
        if value_type.operand_type != first.operand_type:
            raise self.broken(
                f"{self.name_of(position)} is a {OperandType(value_type.operand_type).name} and "
                f"{self.name_of(0)} a {OperandType(first.operand_type).name}; the types must agree"
            )
        moved = self.emission.transposed(tensor, order) if order else tensor
        return self.dequantized(moved, value_type)

    def by_channel(self, position: int) -> PerChannel | None:
        """Return the scales of an argument quantized by channel; None for others."""
        found = self.type_of(position)
        if found.operand_type != OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL:
            return None
        return per_channel_of(found.extra_params, found.dimensions, self.name_of(position))

    def scaled(self, tensor: Tensor, scales: Sequence[float], axis: int) -> Tensor:
        """Dequantize symmetric values with one scale for each element along an axis."""
        factors = np.array(scales, np.float32)
        zeros = np.zeros(len(factors), tensor.dtype.numpy)
        operands = [tensor, self.emission.inline(factors), self.emission.inline(zeros)]
        emit = self.emission.emit
        return emit("DequantizeLinear", operands, tensor.shape, DType.FLOAT32, axis=axis)

    def dequantized(self, tensor: Tensor, value_type: ValueType) -> Tensor:
        """Convert a stored tensor to float32."""
        emit = self.emission.emit
        if tensor.dtype is DType.FLOAT32:
            return tensor
        if tensor.dtype is DType.FLOAT16:
            return emit("Cast", [tensor], tensor.shape, DType.FLOAT32, to=_FLOAT32_NUMBER)
        operands = [tensor, *self._quantization(value_type, tensor.dtype)]
        return emit("DequantizeLinear", operands, tensor.shape, DType.FLOAT32)

    def stored(self, tensor: Tensor) -> Tensor:
        """Convert a float32 tensor to the type of the first output."""
        emit, value_type = self.emission.emit, self.output_type
        if value_type.operand_type == OperandType.TENSOR_FLOAT32:
            return tensor
        if value_type.operand_type == OperandType.TENSOR_FLOAT16:
            return emit("Cast", [tensor], tensor.shape, DType.FLOAT16, to=_FLOAT16_NUMBER)
        signed = value_type.operand_type == OperandType.TENSOR_QUANT8_ASYMM_SIGNED
        dtype = DType.INT8 if signed else DType.UINT8
        operands = [tensor, *self._quantization(value_type, dtype)]
        return emit("QuantizeLinear", operands, tensor.shape, dtype)

    def finished(self, tensor: Tensor, activation_at: int) -> Tensor:
        """Apply the fused activation to a float32 result and convert it to the output's type."""
        self.check_output_type(self.type_of(0))
        given = self.given(activation_at, OperandType.INT32)
        if given is not None:
            return self.stored(clipped(self.emission, tensor, given))
        return self.stored(self.activated(tensor, self.activation(activation_at)))

    def given(self, position: int, wanted: OperandType) -> Tensor | None:
        """Return a scalar argument that a request brings; None for a constant."""
        if self.is_constant(position):
            return None
        self._check_scalar(position, wanted)
        return self.tensor(position, {wanted})

    def activation(self, position: int) -> FusedActivation:
        """Return a constant argument as a fused activation."""
        number = self.number(position)
        if number not in set(FusedActivation):
            raise self.broken(f"{self.name_of(position)} is activation {number}; they are 0 to 3")
        return FusedActivation(number)

    def activated(self, tensor: Tensor, activation: FusedActivation) -> Tensor:
        """Apply an activation to a float32 tensor."""
        emission = self.emission
        if activation == FusedActivation.NONE:
            return tensor
        if activation == FusedActivation.RELU:
            return emission.emit("Relu", [tensor], tensor.shape)
        least, most = (-1.0, 1.0) if activation == FusedActivation.RELU1 else (0.0, 6.0)
        bounds = [emission.number(least), emission.number(most)]
        return emission.emit("Clip", [tensor, *bounds], tensor.shape)

    def check_output_type(self, wanted: ValueType) -> None:
        """Check the element type of the output."""
        found = self.output_type.operand_type
        if found != wanted.operand_type:
            raise self.broken(
                f"operand {self.operation.outputs[0]} (output 0) is a {OperandType(found).name}; "
                f"NNAPI requires {OperandType(wanted.operand_type).name}"
            )

    def check_same_quantization(self) -> None:
        """Check that the output has the quantization of the first input."""
        one, other = self.type_of(0), self.output_type
        if (one.scale, one.zero_point) != (other.scale, other.zero_point):
            raise self.broken(
                f"operand {self.operation.outputs[0]} (output 0) has scale {other.scale} and zero "
                f"point {other.zero_point}; NNAPI requires those of {self.name_of(0)}, {one.scale} "
                f"and {one.zero_point}"
            )

    def number(self, position: int) -> int:
        """Return the value of a constant INT32 scalar."""
        return int(self._scalar(position, OperandType.INT32))

    def flag(self, position: int) -> bool:
        """Return the value of a constant BOOL scalar."""
        return bool(self._scalar(position, OperandType.BOOL))

    def factor(self, position: int) -> float:
        """Return the value of a constant scalar of type `factor_type`."""
        return float(self._scalar(position, self.factor_type))

    @property
    def factor_type(self) -> OperandType:
        """Float type of scalars, as wide as the first input's."""
        is_half = self.type_of(0).operand_type == OperandType.TENSOR_FLOAT16
        return OperandType.FLOAT16 if is_half else OperandType.FLOAT32

    def known_lengths(self, position: int) -> tuple[int, ...]:
        """Return the elements of a constant INT32 tensor of one axis."""
        tensor = self.tensor(position, {OperandType.TENSOR_INT32})
        operand = self._operand(position)
        if len(tensor.shape) != 1:
            raise self.broken(f"{self.name_of(position)} has {len(tensor.shape)} axes, not 1")
        return tuple(int(each) for each in self._constant(position, operand))

    def name_of(self, position: int) -> str:
        """Return the name of an argument in messages."""
        return f"operand {self.operation.inputs[position]} (input {position})"

    def broken(self, message: str) -> DriverError:
        """Return an error for an operation that breaks a rule of NNAPI."""
        return invalid(f"{self._name}: {message}.")

    def unsized(self, position: int) -> OpenDimensionsError:
        """Return an error for an argument with an unknown axis."""
        return OpenDimensionsError(
            f"{self._name} cannot be translated yet: {self.name_of(position)} has dimensions "
            f"{list(self.type_of(position).dimensions)}; every axis must be known to run it."
        )

    def uncovered(self, message: str) -> DriverError:
        """Return an error for an operation that is not supported."""
        return failure(f"{self._name} cannot be translated: {message}.")

    @property
    def _name(self) -> str:
        return f"Operation {self.position} ({operation_name(self.operation.operation_type)})"

    def _operand(self, position: int) -> Operand:
        return self.operands[self.operation.inputs[position]]

    def _check_scalar(self, position: int, wanted: OperandType) -> None:
        operand_type = self.type_of(position).operand_type
        if operand_type != wanted:
            raise self.broken(
                f"{self.name_of(position)} is a {OperandType(operand_type).name}; NNAPI requires "
                f"{wanted.name}"
            )

    def _scalar(self, position: int, wanted: OperandType) -> np.generic:
        operand = self._operand(position)
        self._check_scalar(position, wanted)
        found: np.generic = self._constant(position, operand).reshape(1)[0]
        return found

    def _constant(self, position: int, operand: Operand) -> Array:
        constant = self.constants.constant(operand)
        if constant is None:
            raise self.uncovered(
                f"{self.name_of(position)} must be a constant, since the output's shape depends "
                f"on it; it has lifetime {Lifetime(operand.lifetime).name}"
            )
        return constant.array()

    def _quantization(self, value_type: ValueType, dtype: DType) -> list[Tensor]:
        zero_point = np.array(value_type.zero_point, dtype.numpy)
        return [self.emission.number(value_type.scale), self.emission.inline(zero_point)]
