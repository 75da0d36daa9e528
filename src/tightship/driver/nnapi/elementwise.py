"""Elementwise operations: arithmetic, activations and quantization."""

import numpy as np

from tightship.driver.nnapi import given
from tightship.driver.nnapi.emission import Emission, Tensor
from tightship.driver.nnapi.operation_type import FusedActivation, OperationType
from tightship.driver.nnapi.site import FLOATS, NUMBERS, QUANTIZED, Site
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


def binary(site: Site) -> Tensor:
    """Translate ADD, SUB, MUL, DIV, with broadcasting."""
    site.check_count(3)
    kind = OperationType(site.operation.operation_type)
    if site.type_of(0).operand_type == OperandType.TENSOR_INT32:
        return _integers(site, kind)
    if kind is OperationType.DIV:
        for position in (0, 1):
            site.tensor(position, FLOATS)
    left, right = site.real(0), site.real(1)
    product = site.type_of(0).scale * site.type_of(1).scale
    if kind is OperationType.MUL and product and site.output_type.scale <= product:
        raise site.broken(
            f"its output has scale {site.output_type.scale}; NNAPI requires more than the product "
            f"of the inputs' scales, {product}"
        )
    made = site.emission.emit(_OPERATORS[kind], [left, right], broadcast(site, left, right))
    return site.finished(made, 2)


def activation(site: Site) -> Tensor:
    """Translate RELU, RELU1, RELU6."""
    site.check_count(1)
    value = site.real(0)
    site.check_output_type(site.type_of(0))
    site.check_same_quantization()
    kind = OperationType(site.operation.operation_type)
    return site.stored(site.activated(value, _ACTIVATIONS[kind]))


def logistic(site: Site) -> Tensor:
    """Translate LOGISTIC."""
    return _curve(site, "Sigmoid")


def tanh(site: Site) -> Tensor:
    """Translate TANH."""
    return _curve(site, "Tanh")


def softmax(site: Site) -> Tensor:
    """Translate SOFTMAX of `beta` times the input, along the last axis unless one is given."""
    site.check_count(2, 3)
    value = site.real(0)
    rank = len(value.shape)
    check_fixed_quantization(site)
    value = _scaled(site, value)
    given_axis = site.given(2, OperandType.INT32) if site.input_count == 3 else None
    if given_axis is not None:
        return site.stored(given.softmax(site.emission, value, given_axis))
    axis = site.number(2) if site.input_count == 3 else -1
    if not -rank <= axis < rank:
        raise site.broken(f"its axis is {axis}; its input has {rank} axes")
    made = site.emission.emit("Softmax", [value], value.shape, axis=axis % rank)
    return site.stored(made)


def _scaled(site: Site, value: Tensor) -> Tensor:
    emission = site.emission
    found = site.given(1, site.factor_type)
    if found is not None:
        beta = site.dequantized(found, site.type_of(1))
        product = emission.emit("Mul", [value, beta], value.shape)
        is_above = emission.emit("Greater", [beta, emission.number(0)], (), DType.BOOL)
        return given.where(emission, product, is_above)
    factor = site.factor(1)
    if not factor > 0:
        raise site.broken(f"{site.name_of(1)} is a beta of {factor}; it must be above 0")
    if factor == 1:
        return value
    return emission.emit("Mul", [value, emission.number(factor)], value.shape)


def quantize(site: Site) -> Tensor:
    """Translate QUANTIZE: round to the nearest numbers of the output's type."""
    site.check_count(1)
    site.tensor(0, FLOATS)
    if site.output_type.operand_type not in QUANTIZED:
        raise site.broken("its output must be quantized")
    return site.stored(site.real(0))


def dequantize(site: Site) -> Tensor:
    """Translate DEQUANTIZE: compute the real numbers of a quantized tensor."""
    site.check_count(1)
    stored = site.tensor(0, QUANTIZED | _SYMMETRIC)
    if site.output_type.operand_type not in FLOATS:
        raise site.broken("its output must be a tensor of floats")
    found = site.by_channel(0)
    if found is not None:
        return site.stored(site.scaled(stored, found.scales, found.axis))
    return site.stored(site.dequantized(stored, site.type_of(0)))


def check_fixed_quantization(site: Site) -> None:
    """Check that the output has the input's type and, if quantized, the required quantization."""
    site.check_output_type(site.type_of(0))
    found = site.output_type
    if found.operand_type not in QUANTIZED:
        return
    scale, zero_point = FIXED_QUANTIZATIONS[OperationType(site.operation.operation_type)]
    zero_point -= 128 * (found.operand_type == OperandType.TENSOR_QUANT8_ASYMM_SIGNED)
    if (found.scale, found.zero_point) != (scale, zero_point):
        raise site.broken(
            f"its output has scale {found.scale} and zero point {found.zero_point}; NNAPI requires "
            f"{scale} and {zero_point}"
        )


def _curve(site: Site, operator: str) -> Tensor:
    site.check_count(1)
    value = site.real(0)
    check_fixed_quantization(site)
    return site.stored(site.emission.emit(operator, [value], value.shape))


def _integers(site: Site, kind: OperationType) -> Tensor:
    left, right = (site.tensor(each, NUMBERS | {OperandType.TENSOR_INT32}) for each in (0, 1))
    if left.dtype is not right.dtype:
        raise site.broken(f"{site.name_of(1)} must be a TENSOR_INT32, like {site.name_of(0)}")
    found = site.given(2, OperandType.INT32)
    if found is None and site.activation(2) != FusedActivation.NONE:
        raise site.broken(f"{site.name_of(2)} must be activation 0 (NONE) for integers")
    site.check_output_type(site.type_of(0))
    shape = broadcast(site, left, right)
    if kind is OperationType.DIV:
        made = _floored(site.emission, left, right, shape)
    else:
        made = site.emission.emit(_OPERATORS[kind], [left, right], shape)
    if found is None:
        return made
    is_none = given.equal(site.emission, found, FusedActivation.NONE)
    return given.where(site.emission, made, is_none)


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


def broadcast(site: Site, left: Tensor, right: Tensor) -> tuple[int, ...]:
    """Return the shape of two broadcast operands."""
    rank = max(len(left.shape), len(right.shape))
    shapes = [(1,) * (rank - len(each.shape)) + each.shape for each in (left, right)]
    lengths = []
    for one, other in zip(*shapes, strict=True):
        if one != other and 1 not in {one, other}:
            raise site.broken(
                f"{site.name_of(0)} has dimensions {list(left.shape)} and {site.name_of(1)} "
                f"{list(right.shape)}, which cannot be broadcast"
            )
        lengths.append(max(one, other))
    return tuple(lengths)
