"""Operations that multiply by a filter: convolutions and fully connected layers."""

from tightship.driver.nnapi.emission import Tensor
from tightship.driver.nnapi.given import equal, where
from tightship.driver.nnapi.site import QUANTIZED, Site
from tightship.driver.nnapi.window import finished_image, four_axes, read_arguments, window_over
from tightship.driver.types.operand_type import OperandType, ValueType
from tightship.graph import element_count

OIHW_OF_OHWI = (0, 3, 1, 2)
OIHW_OF_IHWO = (3, 0, 1, 2)

SCALE_TOLERANCE = 1e-6
"""Relative difference allowed between the scale of a bias and that of the products."""


def convolution(site: Site) -> Tensor:
    """Translate CONV_2D; the filter is [out, height, width, in]."""
    arguments = read_arguments(site, 3, 0, is_dilated=True)
    image = four_axes(site, 0, arguments.order)
    weights = _filter(site, OIHW_OF_OHWI, 0)
    count, depth, *kernel = weights.shape
    if depth != image.shape[1]:
        raise site.broken(
            f"{site.name_of(1)} has a depth of {depth}, but {site.name_of(0)} one of "
            f"{image.shape[1]}"
        )
    bias = _bias(site, count)
    window = window_over(site, image.shape[2:], (kernel[0], kernel[1]), arguments)
    shape = (image.shape[0], count, *window.lengths)
    made = site.emission.emit(
        "Conv", [image, weights, bias], shape, group=1, **window.attributes(is_dilated=True)
    )
    return finished_image(site, made, arguments)


def depthwise_convolution(site: Site) -> Tensor:
    """Translate DEPTHWISE_CONV_2D; the filter is [1, height, width, channels * multiplier]."""
    arguments = read_arguments(site, 3, 1, is_dilated=True, is_middle_free=True)
    image = four_axes(site, 0, arguments.order)
    weights = _filter(site, OIHW_OF_IHWO, 3)
    count, depth, *kernel = weights.shape
    channels = image.shape[1]
    given = site.given(arguments.activation_at - 1, OperandType.INT32)
    multiplier = count // channels if given is not None else arguments.middle[0]
    if depth != 1 or multiplier < 1 or count != channels * multiplier:
        raise site.broken(
            f"{site.name_of(1)} has {depth} along its first axis and {count} along its last; "
            f"NNAPI requires 1, and {channels} channels times a multiplier of {multiplier}"
        )
    bias = _bias(site, count)
    window = window_over(site, image.shape[2:], (kernel[0], kernel[1]), arguments)
    shape = (image.shape[0], count, *window.lengths)
    made = site.emission.emit(
        "Conv", [image, weights, bias], shape, group=channels, **window.attributes(is_dilated=True)
    )
    if given is not None:
        made = where(site.emission, made, equal(site.emission, given, multiplier))
    return finished_image(site, made, arguments)


def fully_connected(site: Site) -> Tensor:
    """Translate FULLY_CONNECTED; the input is flattened to rows of the weights' depth."""
    site.check_count(4)
    stored = site.tensor(0)
    weights = site.real(1)
    if len(stored.shape) < 2 or len(weights.shape) != 2:
        raise site.broken(
            f"{site.name_of(0)} has {len(stored.shape)} axes and {site.name_of(1)} "
            f"{len(weights.shape)}; NNAPI requires at least 2, and 2"
        )
    units, depth = weights.shape
    elements = element_count(stored.shape)
    if elements % depth:
        raise site.broken(
            f"{site.name_of(0)} has {elements} elements, not a multiple of the {depth} inputs of "
            f"{site.name_of(1)}"
        )
    rows = elements // depth
    if stored.shape != (rows, depth):
        lengths = site.emission.lengths((rows, depth))
        stored = site.emission.emit("Reshape", [stored, lengths], (rows, depth))
    operands = [site.dequantized(stored, site.type_of(0)), weights, _bias(site, units)]
    made = site.emission.emit("Gemm", operands, (rows, units), transB=1)
    return site.finished(made, 3)


def _filter(site: Site, order: tuple[int, ...], channels: int) -> Tensor:
    """Return the filter in float32 and this order; `channels` is the axis allowed for scales."""
    found = site.by_channel(1)
    if found is None:
        return four_axes(site, 1, order)
    if site.type_of(0).operand_type not in QUANTIZED or found.axis != channels:
        raise site.broken(
            f"{site.name_of(1)} is quantized along axis {found.axis}; NNAPI requires axis "
            f"{channels}, and {site.name_of(0)} quantized"
        )
    stored = site.tensor(1, {OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL})
    if len(stored.shape) != len(order):
        raise site.broken(f"{site.name_of(1)} has {len(stored.shape)} axes; NNAPI requires 4")
    moved = site.emission.transposed(stored, order)
    return site.scaled(moved, found.scales, order.index(channels))


def _bias(site: Site, count: int) -> Tensor:
    """Return the bias in float32; a quantized operation has INT32 in units of the products."""
    found = site.by_channel(1)
    if site.type_of(0).operand_type not in QUANTIZED:
        bias = site.real(2)
    elif found is not None:
        stored = site.tensor(2, {OperandType.TENSOR_INT32})
        if site.type_of(2).scale or stored.shape != (len(found.scales),):
            raise site.broken(
                f"{site.name_of(2)} has scale {site.type_of(2).scale} and dimensions "
                f"{list(stored.shape)}; beside a filter quantized by channel NNAPI requires 0 and "
                f"[{count}]"
            )
        bias = site.scaled(stored, [site.type_of(0).scale * each for each in found.scales], 0)
    else:
        stored = site.tensor(2, {OperandType.TENSOR_INT32})
        bias = site.dequantized(stored, _bias_type(site))
    if bias.shape != (count,):
        raise site.broken(
            f"{site.name_of(2)} has dimensions {list(bias.shape)}; NNAPI requires [{count}]"
        )
    return bias


def _bias_type(site: Site) -> ValueType:
    """Return the type of a bias, checked to be in units of the products."""
    product = site.type_of(0).scale * site.type_of(1).scale
    value_type = site.type_of(2)
    scale = value_type.scale
    if abs(scale - product) > SCALE_TOLERANCE * min(scale, product):
        raise site.broken(
            f"{site.name_of(2)} has scale {scale}; NNAPI requires that of the products, {product}"
        )
    return ValueType(value_type.operand_type, (), product)
