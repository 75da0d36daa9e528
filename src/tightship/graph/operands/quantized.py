"""Operand rules of quantized operators: scales and zero points by tensor, axis, row or block."""

from tightship.graph.layout import Dimension, Shape
from tightship.graph.operands.operands import Operands, text
from tightship.graph.operands.windows import convolution
from tightship.graph.recurrent_shapes import agree

AXES_FROM = 13
"""First opset in which a scale may vary along an axis."""


def linear(at: Operands) -> None:
    """Require one scale, one for each index of an axis, or one for each block along it."""
    x, scale = at.shape(0), at.shape(1)
    block = at.integer("block_size", 0)
    if block > 0:
        axis = at.axis("axis", 1, len(x))
        length = x[axis]
        count = -(-length // block) if isinstance(length, int) else None
        at.require(1, (*x[:axis], count, *x[axis + 1 :]))
    elif any(length != 1 for length in scale) and scale:
        if at.version < AXES_FROM:
            at.require_one(1)
        if len(scale) != 1:
            at.require_rank(1, 1)
        at.require(1, (x[at.axis("axis", 1, len(x))],))
    _like_scale(at, 1)


def _like_scale(at: Operands, scale: int) -> None:
    """Require that the zero point after a scale has its shape, or that both have one element."""
    shape, zero = at.find(scale), at.find(scale + 1)
    if shape is None or zero is None or agree(shape, zero):
        return
    if any(length != 1 for length in (*shape, *zero) if isinstance(length, int)):
        at.refuse(scale + 1, f"{text(shape)}, as of the scale, is needed")


def _by_row(at: Operands, operand: int, parameters: tuple[int, ...], axis: int) -> None:
    """Require one parameter of a matrix, or one for each row (axis -2) or column (axis -1)."""
    shape = at.find(operand)
    if shape is None:
        return
    count: Dimension = shape[axis] if len(shape) >= -axis else 1
    whole: Shape = (1,) * len(shape)
    if len(shape) >= 2:
        whole = (*shape[:-2], count, 1) if axis == -2 else (*shape[:-2], 1, count)
    for place in parameters:
        found = at.find(place)
        if found is not None and any(length != 1 for length in found):
            at.require(place, (count,), whole)


def matmul_integer(at: Operands) -> None:
    _by_row(at, 0, (2,), -2)
    _by_row(at, 1, (3,), -1)


def qlinear_matmul(at: Operands) -> None:
    _by_row(at, 0, (1, 2), -2)
    _by_row(at, 3, (4, 5), -1)
    _by_row(at, 0, (6, 7), -2)
    for scale in (1, 4, 6):
        _like_scale(at, scale)


def conv_integer(at: Operands) -> None:
    channels = convolution(at)
    at.require_one(2)
    at.require(3, (), (1,), (channels,))


def qlinear_conv(at: Operands) -> None:
    channels = convolution(at, 0, 3)
    at.require_one(1, 2, 6, 7)
    at.require(4, (), (1,), (channels,))
    at.require(5, (), (1,), (channels,))
    at.require(8, (channels,))
    _like_scale(at, 4)
