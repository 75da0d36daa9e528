"""Reductions over windows."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tightship.frontend.jax.call import Call
from tightship.frontend.writer import Operand


@dataclass(frozen=True, slots=True)
class _Pool:
    """Windows over some axes, which come last in `order`."""

    order: tuple[int, ...]
    axes: tuple[int, ...]
    attributes: dict[str, Any]

    def image(self, call: Call, operand: Operand) -> Operand:
        """Convert an array to images: axes without windows become batch and channels."""
        moved = call.permuted(operand, self.order)
        count = len(self.axes)
        others, space = moved.shape[:-count], moved.shape[-count:]
        batch = others if len(others) == 2 else (1, math.prod(others))
        return call.reshaped(moved, (*batch, *space))

    def back(self, call: Call, image: Operand, shape: tuple[int, ...]) -> Operand:
        """Convert images back to an array of this shape."""
        moved = call.reshaped(image, [shape[axis] for axis in self.order])
        order = tuple(self.order.index(axis) for axis in range(len(shape)))
        return call.permuted(moved, order)


def _pool_of(call: Call) -> _Pool:
    names = ("window_dimensions", "window_strides", "padding")
    sizes, steps, pads = ([*call[name]] for name in names)
    gaps = call.equation.params.get("window_dilation") or (1,) * len(sizes)
    if any(number != 1 for number in call.equation.params.get("base_dilation") or ()):
        raise call.refuse("pools an image with gaps (`base_dilation`)")
    axes = [axis for axis, size in enumerate(sizes) if size > 1 or steps[axis] > 1]
    axes = axes or [len(sizes) - 1]
    if len(axes) > 3 or any(any(pads[a]) for a in range(len(sizes)) if a not in axes):
        raise call.refuse(f"pools over {len(axes)} axes, or pads others; up to 3 are supported")
    others = tuple(axis for axis in range(len(sizes)) if axis not in axes)
    attributes = {
        "kernel_shape": tuple(int(sizes[axis]) for axis in axes),
        "strides": tuple(int(steps[axis]) for axis in axes),
        "dilations": tuple(int(gaps[axis]) for axis in axes),
        "pads": (*(int(pads[a][0]) for a in axes), *(int(pads[a][1]) for a in axes)),
    }
    return _Pool((*others, *axes), tuple(axes), attributes)


def largest(call: Call) -> Operand:
    """Translate the maximum of each window."""
    return _pooled(call, "MaxPool", _pool_of(call))


def total(call: Call) -> Operand:
    """Translate the sum of each window: its mean times the number of its elements."""
    pool = _pool_of(call)
    pool.attributes["count_include_pad"] = 1
    count = math.prod(pool.attributes["kernel_shape"])
    mean = _pooled(call, "AveragePool", pool)
    return call.like("Mul", mean, call.scalar(count, call.dtype))


def _pooled(call: Call, operator: str, pool: _Pool) -> Operand:
    image = pool.image(call, call.operand)
    space = tuple(call.shape[axis] for axis in pool.axes)
    kind = (call.dtype, (*image.shape[:2], *space))
    return pool.back(call, call.add(operator, kind, image, **pool.attributes), call.shape)


def of_largest(call: Call) -> Operand:
    """Translate the gradient of a maximum pool, which goes to the first of equal elements."""
    if call["select_prim"].name != "ge":
        raise call.refuse("spreads gradients to the smallest of each window")
    source, operand = call.operands
    pool = _pool_of(call)
    images = pool.image(call, source), pool.image(call, operand)
    found = call.only(call.own("MaxPoolGrad", images, pool.attributes))
    return pool.back(call, found, call.shape)


TABLE: dict[str, Callable[[Call], Operand]] = {
    "reduce_window_max": largest,
    "reduce_window_sum": total,
    "select_and_scatter_add": of_largest,
}
