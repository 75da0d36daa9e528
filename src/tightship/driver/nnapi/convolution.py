"""Operations that multiply by a filter: convolutions and fully connected layers."""

from tightship.driver.nnapi.emission import Tensor
from tightship.driver.nnapi.given import equal, where
from tightship.driver.nnapi.operation_context import QUANTIZED, OperationContext
from tightship.driver.nnapi.window import finished_image, four_axes, read_arguments, window_over
from tightship.driver.types.operand_type import OperandType, ValueType
from tightship.graph import element_count

OIHW_OF_OHWI = (0, 3, 1, 2)
OIHW_OF_IHWO = (3, 0, 1, 2)

SCALE_TOLERANCE = 1e-6
"""Relative difference allowed between the scale of a bias and that of the products."""


def convolution(context: OperationContext) -> Tensor:
    """Translate CONV_2D; the filter is [out, height, width, in]."""
    arguments = read_arguments(context, 3, 0, is_dilated=True)
    image = four_axes(context, 0, arguments.order)
    weights = _filter(context, OIHW_OF_OHWI, 0)
    count, depth, *kernel = weights.shape
    if depth != image.shape[1]:
        raise context.broken(
            f"{context.name_of(1)} has a depth of {depth}, but {context.name_of(0)} one of "
            f"{image.shape[1]}"
        )
    bias = _bias(context, count)
    window = window_over(context, image.shape[2:], (kernel[0], kernel[1]), arguments)
    shape = (image.shape[0], count, *window.lengths)
    made = context.emission.emit(
        "Conv", [image, weights, bias], shape, group=1, **window.attributes(is_dilated=True)
    )
    return finished_image(context, made, arguments)


def depthwise_convolution(context: OperationContext) -> Tensor:
    """Translate DEPTHWISE_CONV_2D; the filter is [1, height, width, channels * multiplier]."""
    arguments = read_arguments(context, 3, 1, is_dilated=True, is_middle_free=True)
    image = four_axes(context, 0, arguments.order)
    weights = _filter(context, OIHW_OF_IHWO, 3)
    count, depth, *kernel = weights.shape
    channels = image.shape[1]
    given = context.given(arguments.activation_at - 1, OperandType.INT32)
    multiplier = count // channels if given is not None else arguments.middle[0]
    if depth != 1 or multiplier < 1 or count != channels * multiplier:
        raise context.broken(
            f"{context.name_of(1)} has {depth} along its first axis and {count} along its last; "
            f"NNAPI requires 1, and {channels} channels times a multiplier of {multiplier}"
        )
    bias = _bias(context, count)
    window = window_over(context, image.shape[2:], (kernel[0], kernel[1]), arguments)
    shape = (image.shape[0], count, *window.lengths)
    made = context.emission.emit(
        "Conv", [image, weights, bias], shape, group=channels, **window.attributes(is_dilated=True)
    )
    if given is not None:
        made = where(context.emission, made, equal(context.emission, given, multiplier))
    return finished_image(context, made, arguments)


def fully_connected(context: OperationContext) -> Tensor:
    """Translate FULLY_CONNECTED; the input is flattened to rows of the weights' depth."""
    context.check_count(4)
    stored = context.tensor(0)
    weights = context.real(1)
    if len(stored.shape) < 2 or len(weights.shape) != 2:
        raise context.broken(
            f"{context.name_of(0)} has {len(stored.shape)} axes and {context.name_of(1)} "
            f"{len(weights.shape)}; NNAPI requires at least 2, and 2"
        )
    units, depth = weights.shape
    elements = element_count(stored.shape)
    if elements % depth:
        raise context.broken(
            f"{context.name_of(0)} has {elements} elements, not a multiple of the {depth} inputs "
            f"of {context.name_of(1)}"
        )
    rows = elements // depth
    if stored.shape != (rows, depth):
        lengths = context.emission.lengths((rows, depth))
        stored = context.emission.emit("Reshape", [stored, lengths], (rows, depth))
    operands = [context.dequantized(stored, context.type_of(0)), weights, _bias(context, units)]
    made = context.emission.emit("Gemm", operands, (rows, units), transB=1)
    return context.finished(made, 3)


def _filter(context: OperationContext, order: tuple[int, ...], channels: int) -> Tensor:
    """Return the filter in float32 and this order; `channels` is the axis allowed for scales."""
    found = context.by_channel(1)
    if found is None:
        return four_axes(context, 1, order)
    if context.type_of(0).operand_type not in QUANTIZED or found.axis != channels:
        raise context.broken(
            f"{context.name_of(1)} is quantized along axis {found.axis}; NNAPI requires axis "
            f"{channels}, and {context.name_of(0)} quantized"
        )
    stored = context.tensor(1, {OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL})
    if len(stored.shape) != len(order):
        raise context.broken(f"{context.name_of(1)} has {len(stored.shape)} axes; NNAPI requires 4")
    moved = context.emission.transposed(stored, order)
    return context.scaled(moved, found.scales, order.index(channels))


def _bias(context: OperationContext, count: int) -> Tensor:
    """Return the bias in float32; a quantized operation has INT32 in units of the products."""
    found = context.by_channel(1)
    if context.type_of(0).operand_type not in QUANTIZED:
        bias = context.real(2)
    elif found is not None:
        stored = context.tensor(2, {OperandType.TENSOR_INT32})
        if context.type_of(2).scale or stored.shape != (len(found.scales),):
            raise context.broken(
                f"{context.name_of(2)} has scale {context.type_of(2).scale} and dimensions "
                f"{list(stored.shape)}; beside a filter quantized by channel NNAPI requires 0 and "
                f"[{count}]"
            )
        bias = context.scaled(stored, [context.type_of(0).scale * each for each in found.scales], 0)
    else:
        stored = context.tensor(2, {OperandType.TENSOR_INT32})
        bias = context.dequantized(stored, _bias_type(context))
    if bias.shape != (count,):
        raise context.broken(
            f"{context.name_of(2)} has dimensions {list(bias.shape)}; NNAPI requires [{count}]"
        )
    return bias


def _bias_type(context: OperationContext) -> ValueType:
    """Return the type of a bias, checked to be in units of the products."""
    product = context.type_of(0).scale * context.type_of(1).scale
    value_type = context.type_of(2)
    scale = value_type.scale
    if abs(scale - product) > SCALE_TOLERANCE * min(scale, product):
        raise context.broken(
            f"{context.name_of(2)} has scale {scale}; NNAPI requires that of the products, "
            f"{product}"
        )
    return ValueType(value_type.operand_type, (), product)
