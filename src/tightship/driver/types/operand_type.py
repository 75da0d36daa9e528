"""Operand types of NNAPI and of the driver's extension: element sizes and valid quantization."""

import enum
import math
from dataclasses import dataclass

from tightship.driver.types.dimensions import Dimensions, element_count, is_specified
from tightship.driver.types.per_channel import per_channel_of
from tightship.driver.types.status import invalid

DIMENSION_MAX = 2**31 - 1
BYTES_MAX = 2**63 - 1


EXTENSION = 1 << 16
"""First type of the driver's extension; NNAPI keeps an extension's prefix in these upper bits."""


class OperandType(enum.IntEnum):
    """Basic types of NNAPI, and extension types for elements that NNAPI lacks.

    Inputs and outputs of ONNX models may have extension types. Models of operands may not: no NNAPI
    operation takes them, and `check_model` refuses extension and OEM types.
    """

    FLOAT32 = 0
    INT32 = 1
    UINT32 = 2
    TENSOR_FLOAT32 = 3
    TENSOR_INT32 = 4
    TENSOR_QUANT8_ASYMM = 5
    BOOL = 6
    TENSOR_QUANT16_SYMM = 7
    TENSOR_FLOAT16 = 8
    TENSOR_BOOL8 = 9
    FLOAT16 = 10
    TENSOR_QUANT8_SYMM_PER_CHANNEL = 11
    TENSOR_QUANT16_ASYMM = 12
    TENSOR_QUANT8_SYMM = 13
    TENSOR_QUANT8_ASYMM_SIGNED = 14
    SUBGRAPH = 15
    INT64 = EXTENSION
    TENSOR_INT64 = EXTENSION + 1
    UINT64 = EXTENSION + 2
    TENSOR_UINT64 = EXTENSION + 3
    FLOAT64 = EXTENSION + 4
    TENSOR_FLOAT64 = EXTENSION + 5
    TENSOR_UINT32 = EXTENSION + 6


_SCALARS = frozenset({0, 1, 2, 6, 10, 15, *range(EXTENSION, EXTENSION + 6, 2)})
_ELEMENT_BYTES = dict(enumerate((4, 4, 4, 4, 4, 1, 1, 2, 2, 1, 2, 1, 2, 1, 1, 0)))
_ELEMENT_BYTES |= dict.fromkeys(range(EXTENSION, EXTENSION + 6), 8) | {EXTENSION + 6: 4}
_ZERO_POINTS = {  # ranges, for the types that must have a scale
    OperandType.TENSOR_QUANT8_ASYMM: (0, 255),
    OperandType.TENSOR_QUANT16_SYMM: (0, 0),
    OperandType.TENSOR_QUANT16_ASYMM: (0, 65535),
    OperandType.TENSOR_QUANT8_SYMM: (0, 0),
    OperandType.TENSOR_QUANT8_ASYMM_SIGNED: (-128, 127),
}


def is_scalar(operand_type: int) -> bool:
    """Whether values of a valid type have no dimensions."""
    return operand_type in _SCALARS


def element_bytes(operand_type: int) -> int:
    """Bytes of an element of a valid type; 0 for a subgraph."""
    return _ELEMENT_BYTES[operand_type]


def size_bytes(operand_type: int, dimensions: Dimensions) -> int:
    """Bytes of a value of a valid type; 0 while its rank or an axis is unknown."""
    if not is_specified(dimensions, is_scalar=operand_type in _SCALARS):
        return 0
    return element_count(dimensions) * _ELEMENT_BYTES[operand_type]


@dataclass(frozen=True, slots=True)
class ValueType:
    """Type, dimensions and quantization of an operand.

    Attributes:
        operand_type: An `OperandType`; any integer until it is checked.
        dimensions: Lengths of axes, 0 if unknown; empty for a scalar or a tensor of unknown rank.
        scale: Step between values of a quantized type; 0.0 for other types.
        zero_point: Integer that stands for 0 in a quantized type; 0 for other types.
        extra_params: Encoded `PerChannel` of a tensor quantized by channel.
    """

    operand_type: int
    dimensions: Dimensions = ()
    scale: float = 0.0
    zero_point: int = 0
    extra_params: bytes = b""

    @property
    def is_scalar(self) -> bool:
        """Whether the value has no dimensions because it is one element."""
        return self.operand_type in _SCALARS

    @property
    def size_bytes(self) -> int:
        """Bytes of the value; 0 while its rank or an axis is unknown."""
        return size_bytes(self.operand_type, self.dimensions)


def check_value_type(value: ValueType, name: str) -> None:
    """Check type, dimensions and quantization of an operand.

    Raises:
        DriverError: INVALID_ARGUMENT.
    """
    if not 0 <= value.operand_type <= OperandType.SUBGRAPH:
        raise invalid(f"{name} has type {value.operand_type}; types are 0 to 15.")
    if value.is_scalar and value.dimensions:
        raise invalid(f"{name} is a scalar and has {len(value.dimensions)} dimensions, not 0.")
    check_dimensions(value.dimensions, name)
    if value.size_bytes > BYTES_MAX:
        raise invalid(f"{name} has dimensions whose product overflows 63 bits.")
    _check_quantization(value, name)


def check_dimensions(dimensions: Dimensions, name: str) -> None:
    """Check that every axis is unknown (0) or a length.

    Raises:
        DriverError: INVALID_ARGUMENT.
    """
    for axis in dimensions:
        if not 0 <= axis <= DIMENSION_MAX:
            raise invalid(f"{name} has an axis of {axis}; an axis is 0 to {DIMENSION_MAX}.")


def _check_quantization(value: ValueType, name: str) -> None:
    operand_type = value.operand_type
    if operand_type == OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL:
        per_channel_of(value.extra_params, value.dimensions, name)
    elif value.extra_params:
        raise invalid(f"{name} has extra parameters, which its type does not take.")
    limits = _ZERO_POINTS.get(OperandType(operand_type))
    is_scaled = math.isfinite(value.scale) and value.scale > 0
    if limits is not None:
        if not is_scaled:
            raise invalid(f"{name} has scale {value.scale}; its type needs one above 0.")
        if not limits[0] <= value.zero_point <= limits[1]:
            raise invalid(
                f"{name} has zero point {value.zero_point}; its type allows "
                f"{limits[0]} to {limits[1]}."
            )
        return
    may_scale = operand_type == OperandType.TENSOR_INT32 and is_scaled
    if (value.scale != 0 and not may_scale) or value.zero_point != 0:
        raise invalid(
            f"{name} has scale {value.scale} and zero point {value.zero_point}; its type is not "
            "quantized, so both must be 0."
        )
