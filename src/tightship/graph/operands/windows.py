"""Operand rules of convolutions and of other operators with windows."""

from math import prod

from tightship.graph.layout import Dimension
from tightship.graph.operands.operands import MisfitError, Operands, product, text
from tightship.graph.recurrent_shapes import agree


def convolution(at: Operands, x: int = 0, weights: int = 1) -> Dimension:
    """Check an image against the weights of a convolution; return the output channels."""
    image, kernel = at.shape(x, 2), at.shape(weights, 2)
    _same_window(at, weights)
    groups = at.integer("group", 1)
    at.require(x, (image[0], product(kernel[1], groups), *(None,) * (len(kernel) - 2)))
    _divides(at, weights, kernel[0], groups)
    return kernel[0]


def conv(at: Operands) -> None:
    at.require(2, (convolution(at),))


def conv_transpose(at: Operands) -> None:
    image, kernel = at.shape(0, 2), at.shape(1, 2)
    _same_window(at, 1)
    groups = at.integer("group", 1)
    at.require(0, (image[0], kernel[0], *(None,) * (len(kernel) - 2)))
    _divides(at, 1, kernel[0], groups)
    at.require(2, (product(kernel[1], groups),))


def deform_conv(at: Operands) -> None:
    channels, batch = convolution(at), at.shape(0)[0]
    taps = at.shape(1)[2:]
    known = [length for length in taps if isinstance(length, int)]
    whole = at.integer("offset_group", 1) * prod(known) if len(known) == len(taps) else None
    spatial = (None,) * len(taps)
    at.require(2, (batch, product(whole, len(taps)), *spatial))
    at.require(3, (channels,))
    at.require(4, (batch, whole, *(at.find(2) or (None, None, *spatial))[2:]))


def _same_window(at: Operands, weights: int) -> None:
    shape, window = at.shape(weights), at.integers("kernel_shape")
    if window is not None and not agree(window, shape[2:]):
        raise MisfitError(
            f"kernel_shape is {list(window)}, but `{at.names[weights]}` has the shape {text(shape)}"
        )


def _divides(at: Operands, weights: int, channels: Dimension, groups: int) -> None:
    if groups < 1 or (isinstance(channels, int) and channels % groups):
        raise MisfitError(
            f"group is {groups}, which must be at least 1 and divide the first dimension of "
            f"`{at.names[weights]}`, whose shape is {text(at.shape(weights))}"
        )


def max_unpool(at: Operands) -> None:
    at.require(1, at.shape(0))
    at.require(2, (len(at.shape(0)),))


def col2im(at: Operands) -> None:
    lengths = at.find(1) or at.shape(2)
    at.require(1, lengths[:1])
    at.require(2, lengths[:1])


def roi_align(at: Operands) -> None:
    at.require_rank(0, 4)
    at.require(1, (None, 4))
    at.require(2, at.shape(1)[:1])


def max_roi_pool(at: Operands) -> None:
    at.require_rank(0, 4)
    at.require(1, (None, 5))


def grid_sample(at: Operands) -> None:
    x = at.shape(0, 3)
    at.require(1, (x[0], *(None,) * (len(x) - 2), len(x) - 2))
