"""Constants under another shape."""

from functools import partial

from tightship.graph import Constant, Derived, Fill, Inline, Mapped
from tightship.graph.constant import Array
from tightship.graph.length import is_length


def reshaped(constant: Constant, shape: tuple[int, ...]) -> Constant:
    """Return the same elements, in the same order, under another shape."""
    if not any(map(is_length, (*constant.shape, *shape))) and constant.shape == shape:
        return constant
    if isinstance(constant, Fill):
        return Fill(constant.value, shape)
    if isinstance(constant, Mapped):
        return Mapped(constant.file, constant.offset_bytes, constant.dtype, shape)
    if isinstance(constant, Inline):
        return Inline(constant.value.reshape(shape))
    compute = partial(_under_shape, constant, shape)
    return Derived(constant.dtype, shape, compute, (constant,), "reshaped")


def _under_shape(constant: Constant, shape: tuple[int, ...]) -> Array:
    return constant.array().reshape(shape)
