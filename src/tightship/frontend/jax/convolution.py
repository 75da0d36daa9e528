"""Convolutions, and the forms they take in gradients."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tightship.frontend.jax.call import Call
from tightship.frontend.jax.movement import apart
from tightship.frontend.writer import Operand
from tightship.graph.ir import AttributeValue


@dataclass(frozen=True, slots=True)
class _Convolution:
    """Convolution of images and filters in ONNX's order: batch, channels, space.

    `pads` are before and after each axis, negative to cut elements off; `inner` is the dilation of
    the image, `steps` the stride and `spread` the dilation of the filter.
    """

    image: Operand
    filters: Operand
    pads: tuple[tuple[int, int], ...]
    steps: tuple[int, ...]
    inner: tuple[int, ...]
    spread: tuple[int, ...]
    groups: int

    def reach(self, axis: int) -> int:
        """Return the length of a dilated filter."""
        return (self.filters.shape[axis + 2] - 1) * self.spread[axis] + 1


def convolved(call: Call) -> Operand:
    """Translate a convolution with axes in any order."""
    numbers = call["dimension_numbers"]
    image, filters = call.operands
    found = _Convolution(
        call.permuted(image, _whole(numbers.lhs_spec)),
        call.permuted(filters, _whole(numbers.rhs_spec)),
        tuple((int(low), int(high)) for low, high in call["padding"]),
        _whole(call["window_strides"]),
        _whole(call["lhs_dilation"]),
        _whole(call["rhs_dilation"]),
        int(call["feature_group_count"]),
    )
    order = _whole(numbers.out_spec)
    shape = tuple(call.shape[axis] for axis in order)
    result = _written(call, found, int(call["batch_group_count"]), shape)
    return call.permuted(result, tuple(order.index(axis) for axis in range(len(order))))


def _whole(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(number) for number in numbers)


def _written(call: Call, at: _Convolution, batches: int, shape: tuple[int, ...]) -> Operand:
    """Write the convolution as an operator, or as the gradient that it is of another one."""
    is_plain = all(step == 1 for step in at.inner) and all(low >= 0 for low, _ in at.pads)
    taps, places = math.prod(at.filters.shape[2:]), math.prod(shape[2:])
    if is_plain and at.groups == 1 and taps > places:
        return _of_weights(call, at, batches, shape)
    if batches > 1:
        at = _with_groups(call, at, batches)
    if any(step > 1 for step in at.inner) and all(step == 1 for step in at.steps):
        padded = [
            (at.reach(axis) - 1 - low, at.reach(axis) - 1 - high)
            for axis, (low, high) in enumerate(at.pads)
        ]
        if all(low >= 0 for low, _ in padded):
            return _of_image(call, at, padded, shape)
    return _plain(call, at, shape)


def _with_groups(call: Call, at: _Convolution, batches: int) -> _Convolution:
    count, channels, *space = at.image.shape
    apart_ = call.reshaped(at.image, (batches, count // batches, channels, *space))
    order = (1, 0, *range(2, len(space) + 3))
    image = call.reshaped(
        call.permuted(apart_, order), (count // batches, batches * channels, *space)
    )
    return replace(at, image=image, groups=batches)


def _of_weights(call: Call, at: _Convolution, batches: int, shape: tuple[int, ...]) -> Operand:
    """Write a convolution with large filters as the gradient of weights that it is."""
    back = (1, 0, *range(2, at.image.rank))
    image, dy = call.permuted(at.image, back), call.permuted(at.filters, back)
    weights = (shape[1], shape[0], *shape[2:])
    ends = [
        (dy.shape[axis + 2] - 1) * at.spread[axis]
        + (shape[axis + 2] - 1) * at.steps[axis] + 1 - image.shape[axis + 2] - low
        for axis, (low, _) in enumerate(at.pads)
    ]  # fmt: skip
    if any(end < 0 for end in ends):
        kept = [min(0, end) for end in ends]
        pads = call.integers(*[0] * image.rank, 0, 0, *kept)
        cut = (*image.shape[:2], *(n + k for n, k in zip(image.shape[2:], kept, strict=True)))
        image = call.add("Pad", (image.dtype, cut), image, pads)
    attributes: dict[str, AttributeValue] = {
        "kernel_shape": shape[2:],
        "strides": at.spread,
        "dilations": at.steps,
        "pads": (*(low for low, _ in at.pads), *(max(0, end) for end in ends)),
        "group": batches,
        "shape": weights,
    }
    return call.permuted(call.only(call.own("ConvGradWeights", (dy, image), attributes)), back)


def _of_image(
    call: Call, at: _Convolution, pads: list[tuple[int, int]], shape: tuple[int, ...]
) -> Operand:
    """Write a convolution of a dilated image as a transposed one, with filters reversed."""
    count, channels, *taps = at.filters.shape
    groups = at.groups
    filters = _turned(call, at.filters)
    rank = len(taps)
    if groups > 1:
        parts = call.reshaped(filters, (groups, count // groups, channels, *taps))
        moved = call.permuted(parts, (0, 2, 1, *range(3, rank + 3)))
        filters = call.reshaped(moved, (groups * channels, count // groups, *taps))
    else:
        filters = call.permuted(filters, (1, 0, *range(2, rank + 2)))
    attributes: dict[str, AttributeValue] = {
        "kernel_shape": tuple(taps),
        "strides": at.inner,
        "dilations": at.spread,
        "pads": (*(low for low, _ in pads), *(max(0, high) for _, high in pads)),
        "output_padding": tuple(max(0, -high) for _, high in pads),
        "group": groups,
    }
    kind = (at.image.dtype, shape)
    return call.add("ConvTranspose", kind, at.image, filters, **attributes)


def _turned(call: Call, filters: Operand) -> Operand:
    """Reverse all spatial axes of filters, or undo their reversal."""
    axes = tuple(range(2, filters.rank))
    source, order = filters, tuple(range(filters.rank))
    maker = call.writer.makers.get(source.name)
    if maker is not None and maker.operator == "Transpose":
        order = tuple(int(axis) for axis in maker.attributes["perm"])  # type: ignore[union-attr]
        source = call.writer.operand(maker.inputs[0])
        maker = call.writer.makers.get(source.name)
    if maker is not None and maker.operator == "Slice" and len(maker.inputs) == 5:
        steps, chosen = (call.known(call.writer.operand(name)) for name in maker.inputs[:2:-1])
        assert steps is not None
        assert chosen is not None
        if set(steps.tolist()) == {-1} and {order.index(axis) for axis in chosen} == set(axes):
            return call.permuted(call.writer.operand(maker.inputs[0]), order)
    ones, ends = [-1] * len(axes), [-(1 << 62)] * len(axes)
    numbers = [call.integers(*row) for row in (ones, ends, axes, ones)]
    return call.add("Slice", (filters.dtype, filters.shape), filters, *numbers)


def _plain(call: Call, at: _Convolution, shape: tuple[int, ...]) -> Operand:
    image = at.image
    if any(step > 1 for step in at.inner):
        image = apart(call, image, [0, 0, *(step - 1 for step in at.inner)])
    if any(end < 0 for pair in at.pads for end in pair):
        pads = [(0, 0), (0, 0), *at.pads]
        cut = tuple(n + low + high for n, (low, high) in zip(image.shape, pads, strict=True))
        amounts = call.integers(*(low for low, _ in pads), *(high for _, high in pads))
        image = call.add("Pad", (image.dtype, cut), image, amounts)
        at = replace(at, pads=((0, 0),) * len(at.pads))
    return call.add(
        "Conv",
        (image.dtype, shape),
        image,
        at.filters,
        kernel_shape=at.filters.shape[2:],
        strides=at.steps,
        dilations=at.spread,
        pads=(*(low for low, _ in at.pads), *(high for _, high in at.pads)),
        group=at.groups,
    )


TABLE: dict[str, Callable[[Call], Operand]] = {"conv_general_dilated": convolved}
