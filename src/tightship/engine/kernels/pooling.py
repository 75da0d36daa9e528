"""Pooling: one pass over the output for each tap of the window."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import Builder, KernelContext, require
from tightship.engine.kernels.numbers import is_number, is_real, lowest
from tightship.engine.kernels.scratch import ScratchLayout
from tightship.engine.kernels.window import Index, Window, ends_of_padding, window_of
from tightship.graph import element_count


def pool_window(context: KernelContext) -> Window:
    """Return the window of a pool, from its attributes and its output's shape."""
    return window_of(context, context.integers("kernel_shape") or ())


def largest(context: KernelContext) -> Kernel:
    """Find the largest element of each window, and its index if that is an output."""
    require(is_number(context.dtype(0)))
    window = pool_window(context)
    start = lowest(context.dtype(0))
    if context.has_output(1):
        return _largest_and_where(context, window)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        x, out = inputs[0], outputs[0]
        out.fill(start)
        for _tap, into, source in window.taps():
            part = out[(..., *into)]
            np.maximum(part, x[(..., *source)], out=part)

    return Kernel("MaxPool", run)


def _largest_and_where(context: KernelContext, window: Window) -> Kernel:
    """Index elements over the whole tensor, each image row by row or column by column."""
    start, image = lowest(context.dtype(0)), window.image
    layout = ScratchLayout()
    masks = [layout.slot(np.dtype(np.bool_), context.output_shape()) for _ in range(2)]
    places = layout.slot(np.dtype(np.int64), image)
    steps = place_steps(context, window)
    counts = [
        (step * np.arange(length)).reshape(-1, *[1] * (len(image) - 1 - axis))
        for axis, (step, length) in enumerate(zip(steps, image, strict=True))
    ]
    before = context.shape(0)[:2]
    images = np.arange(element_count(before)).reshape(*before, *[1] * len(image))
    images *= element_count(image)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        x, (out, where), inside = inputs[0], outputs, places.of(scratch)
        out.fill(start)
        where.fill(-1)
        inside.fill(0)
        for count in counts:
            np.add(inside, count, out=inside)
        for _tap, into, source in window.taps():
            part, read, place = out[(..., *into)], x[(..., *source)], where[(..., *into)]
            is_larger, is_first = (mask.of(scratch)[(..., *into)] for mask in masks)
            np.less(place, 0, out=is_first)
            np.greater(read, part, out=is_larger)
            np.logical_or(is_larger, is_first, out=is_larger)
            np.copyto(part, read, where=is_larger)
            np.copyto(place, inside[source], where=is_larger)
        np.add(where, images, out=where)

    return Kernel("MaxPool", run, layout.size_bytes)


def place_steps(context: KernelContext, window: Window) -> list[int]:
    """Return what a coordinate along each axis adds to a place in the image."""
    image, turned = window.image, bool(context.integer("storage_order", 0))
    return [
        element_count(image[:axis] if turned else image[axis + 1 :]) for axis in range(len(image))
    ]


def unpool(context: KernelContext) -> Kernel:
    """Put elements at their places in the whole result, zeros elsewhere."""
    require(not context.has_input(2))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        (x, places), (out,) = inputs, outputs
        out.fill(0)
        np.put(out, places, x)

    return Kernel("MaxUnpool", run)


def average(context: KernelContext) -> Kernel:
    """Average each window; padding counts if `count_include_pad` is set."""
    require(is_real(context.dtype(0)))
    window = pool_window(context)
    regions = list(equal_counts(window, limits_of_average(context, window)))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        x, out = inputs[0], outputs[0]
        out.fill(0)
        for _tap, into, source in window.taps():
            part = out[(..., *into)]
            np.add(part, x[(..., *source)], out=part)
        for region, count in regions:
            part = out[(..., *region)]
            np.divide(part, count, out=part)

    return Kernel("AveragePool", run)


def limits_of_average(context: KernelContext, window: Window) -> list[tuple[int, int]]:
    """Return the elements `[start, stop)` of each spatial axis that count, maybe with padding."""
    if context.integer("count_include_pad", 0):
        ends = ends_of_padding(context, window)
        return [(-pad, end) for pad, end in zip(window.pads, ends, strict=True)]
    return [(0, length) for length in window.image]


def equal_counts(window: Window, limits: Sequence[tuple[int, int]]) -> Iterator[tuple[Index, int]]:
    """Yield regions of positions whose windows have equally many taps within `limits`."""
    runs = [list(_runs(window, axis, limit)) for axis, limit in enumerate(limits)]
    for parts in itertools.product(*runs):
        yield tuple(part for part, _ in parts), element_count([taps for _, taps in parts])


def _runs(window: Window, axis: int, limit: tuple[int, int]) -> Iterator[tuple[slice, int]]:
    """Yield runs of positions of one axis with equally many taps within the limit."""

    def count(position: int) -> int:
        first = position * window.strides[axis] - window.pads[axis]
        reads = (first + tap * window.dilations[axis] for tap in range(window.kernel[axis]))
        return sum(limit[0] <= element < limit[1] for element in reads)

    start = 0
    for taps, run in itertools.groupby(range(window.positions[axis]), count):
        stop = start + sum(1 for _ in run)
        yield slice(start, stop), taps
        start = stop


def power_mean(context: KernelContext) -> Kernel:
    """Compute the p-norm of each window."""
    dtype = context.dtype(0)
    require(is_real(dtype))
    window, order = pool_window(context), context.integer("p", 2)
    layout = ScratchLayout()
    power = layout.slot(dtype, context.shape(0))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        powers, out = power.of(scratch), outputs[0]
        np.absolute(inputs[0], out=powers)
        np.power(powers, order, out=powers)
        out.fill(0)
        for _tap, into, source in window.taps():
            part = out[(..., *into)]
            np.add(part, powers[(..., *source)], out=part)
        np.power(out, 1 / order, out=out)

    return Kernel("LpPool", run, layout.size_bytes)


def _global(ufunc: np.ufunc, *, mean: bool) -> Builder:
    def build(context: KernelContext) -> Kernel:
        shape = context.shape(0)
        require(is_real(context.dtype(0)) and len(shape) >= 2)
        axes, count = tuple(range(2, len(shape))), element_count(shape[2:])

        def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
            (out,) = outputs
            ufunc.reduce(inputs[0], axis=axes, out=out, keepdims=True)
            if mean:
                np.divide(out, count, out=out)

        return Kernel(context.node.operator, run)

    return build


global_average_pool = _global(np.add, mean=True)
global_max_pool = _global(np.maximum, mean=False)
