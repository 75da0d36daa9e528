"""Elementwise operations: arithmetic, activations and quantization."""

import numpy as np

from tightship.driver.nnapi import given
from tightship.driver.nnapi.emission import Emission, Tensor
from tightship.driver.nnapi.operation_context import FLOATS, NUMBERS, QUANTIZED, OperationContext
from tightship.driver.nnapi.operation_type import FusedActivation, OperationType
from tightship.driver.types.operand_type import OperandType
from tightship.graph import DType

_OPERATORS = {
    OperationType.ADD: "Add",
    OperationType.SUB: "Sub",
    OperationType.MUL: "Mul",
    OperationType.DIV: "Div",
}
_ACTIVATIONS = {
    OperationType.RELU: FusedActivation.RELU,
    OperationType.RELU1: FusedActivation.RELU1,
    OperationType.RELU6: FusedActivation.RELU6,
}
FIXED_QUANTIZATIONS = {
    OperationType.LOGISTIC: (1 / 256, 0),
    OperationType.SOFTMAX: (1 / 256, 0),
    OperationType.TANH: (1 / 128, 128),
}
"""Required scale and zero point of the output; a signed type has the zero point less 128."""
_SYMMETRIC = frozenset({OperandType.TENSOR_QUANT8_SYMM, OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL})
_INT32_NUMBER, _FLOAT64_NUMBER = 6, 11  # arguments of `Cast`


def binary(context: OperationContext) -> Tensor:
    """Translate ADD, SUB, MUL, DIV, with broadcasting."""
    context.check_count(3)
    kind = OperationType(context.operation.operation_type)
    if context.type_of(0).operand_type == OperandType.TENSOR_INT32:
        return _integers(context, kind)
    if kind is OperationType.DIV:
        for position in (0, 1):
            context.tensor(position, FLOATS)
    left, right = context.real(0), context.real(1)
    product = context.type_of(0).scale * context.type_of(1).scale
    if kind is OperationType.MUL and product and context.output_type.scale <= product:
        raise context.broken(
            f"its output has scale {context.output_type.scale}; NNAPI requires more than the "
            f"product of the inputs' scales, {product}"
        )
    made = context.emission.emit(_OPERATORS[kind], [left, right], broadcast(context, left, right))
    return context.finished(made, 2)


def activation(context: OperationContext) -> Tensor:
    """Translate RELU, RELU1, RELU6."""
    context.check_count(1)
    value = context.real(0)
    context.check_output_type(context.type_of(0))
    context.check_same_quantization()
    kind = OperationType(context.operation.operation_type)
    return context.stored(context.activated(value, _ACTIVATIONS[kind]))


def logistic(context: OperationContext) -> Tensor:
    """Translate LOGISTIC."""
    return _curve(context, "Sigmoid")


def tanh(context: OperationContext) -> Tensor:
    """Translate TANH."""
    return _curve(context, "Tanh")


def softmax(context: OperationContext) -> Tensor:
    """Translate SOFTMAX of `beta` times the input, along the last axis unless one is given."""
    context.check_count(2, 3)
    value = context.real(0)
    rank = len(value.shape)
    check_fixed_quantization(context)
    value = _scaled(context, value)
    given_axis = context.given(2, OperandType.INT32) if context.input_count == 3 else None
    if given_axis is not None:
        return context.stored(given.softmax(context.emission, value, given_axis))
    axis = context.number(2) if context.input_count == 3 else -1
    if not -rank <= axis < rank:
        raise context.broken(f"its axis is {axis}; its input has {rank} axes")
    made = context.emission.emit("Softmax", [value], value.shape, axis=axis % rank)
    return context.stored(made)


def _scaled(context: OperationContext, value: Tensor) -> Tensor:
    emission = context.emission
    found = context.given(1, context.factor_type)
    if found is not None:
        beta = context.dequantized(found, context.type_of(1))
        product = emission.emit("Mul", [value, beta], value.shape)
        is_above = emission.emit("Greater", [beta, emission.number(0)], (), DType.BOOL)
        return given.where(emission, product, is_above)
    factor = context.factor(1)
    if not factor > 0:
        raise context.broken(f"{context.name_of(1)} is a beta of {factor}; it must be above 0")
    if factor == 1:
        return value
    return emission.emit("Mul", [value, emission.number(factor)], value.shape)


def quantize(context: OperationContext) -> Tensor:
    """Translate QUANTIZE: round to the nearest numbers of the output's type."""
    context.check_count(1)
    context.tensor(0, FLOATS)
    if context.output_type.operand_type not in QUANTIZED:
        raise context.broken("its output must be quantized")
    return context.stored(context.real(0))


def dequantize(context: OperationContext) -> Tensor:
    """Translate DEQUANTIZE: compute the real numbers of a quantized tensor."""
    context.check_count(1)
    stored = context.tensor(0, QUANTIZED | _SYMMETRIC)
    if context.output_type.operand_type not in FLOATS:
        raise context.broken("its output must be a tensor of floats")
    found = context.by_channel(0)
    if found is not None:
        return context.stored(context.scaled(stored, found.scales, found.axis))
    return context.stored(context.dequantized(stored, context.type_of(0)))


def check_fixed_quantization(context: OperationContext) -> None:
    """Check that the output has the input's type and, if quantized, the required quantization."""
    context.check_output_type(context.type_of(0))
    found = context.output_type
    if found.operand_type not in QUANTIZED:
        return
    scale, zero_point = FIXED_QUANTIZATIONS[OperationType(context.operation.operation_type)]
    zero_point -= 128 * (found.operand_type == OperandType.TENSOR_QUANT8_ASYMM_SIGNED)
    if (found.scale, found.zero_point) != (scale, zero_point):
        raise context.broken(
            f"its output has scale {found.scale} and zero point {found.zero_point}; NNAPI requires "
            f"{scale} and {zero_point}"
        )


def _curve(context: OperationContext, operator: str) -> Tensor:
    context.check_count(1)
    value = context.real(0)
    check_fixed_quantization(context)
    return context.stored(context.emission.emit(operator, [value], value.shape))


def _integers(context: OperationContext, kind: OperationType) -> Tensor:
    left, right = (context.tensor(each, NUMBERS | {OperandType.TENSOR_INT32}) for each in (0, 1))
    if left.dtype is not right.dtype:
        raise context.broken(
            f"{context.name_of(1)} must be a TENSOR_INT32, like {context.name_of(0)}"
        )
    found = context.given(2, OperandType.INT32)
    if found is None and context.activation(2) != FusedActivation.NONE:
        raise context.broken(f"{context.name_of(2)} must be activation 0 (NONE) for integers")
    context.check_output_type(context.type_of(0))
    shape = broadcast(context, left, right)
    if kind is OperationType.DIV:
        made = _floored(context.emission, left, right, shape)
    else:
        made = context.emission.emit(_OPERATORS[kind], [left, right], shape)
    if found is None:
        return made
    is_none = given.equal(context.emission, found, FusedActivation.NONE)
    return given.where(context.emission, made, is_none)


def _floored(emission: Emission, left: Tensor, right: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Divide int32 exactly, rounding down; a divisor of 0 gives any result."""
    emit, inline = emission.emit, emission.inline
    is_zero = emit("Equal", [right, inline(np.array(0, np.int32))], right.shape, DType.BOOL)
    divisor = emit(
        "Where", [is_zero, inline(np.array(1, np.int32)), right], right.shape, DType.INT32
    )
    wide = [
        emit("Cast", [each], each.shape, DType.FLOAT64, to=_FLOAT64_NUMBER)
        for each in (left, divisor)
    ]
    quotient = emit("Floor", [emit("Div", wide, shape)], shape)
    bounded = emit("Min", [quotient, inline(np.array(2.0**31 - 1))], shape)
    return emit("Cast", [bounded], shape, DType.INT32, to=_INT32_NUMBER)


def broadcast(context: OperationContext, left: Tensor, right: Tensor) -> tuple[int, ...]:
    """Return the shape of two broadcast operands."""
    rank = max(len(left.shape), len(right.shape))
    shapes = [(1,) * (rank - len(each.shape)) + each.shape for each in (left, right)]
    lengths = []
    for one, other in zip(*shapes, strict=True):
        if one != other and 1 not in {one, other}:
            raise context.broken(
                f"{context.name_of(0)} has dimensions {list(left.shape)} and {context.name_of(1)} "
                f"{list(right.shape)}, which cannot be broadcast"
            )
        lengths.append(max(one, other))
    return tuple(lengths)
