"""Gradients of convolutions and pools, over the windows of the forward operators."""

import numpy as np

from tightship.engine.kernels.convolution import Columns, spread_kernel
from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, covered, require
from tightship.engine.kernels.numbers import is_real, lowest
from tightship.engine.kernels.pooling import equal_counts, limits_of_average
from tightship.engine.kernels.scratch import ScratchLayout
from tightship.engine.kernels.window import Window, window_between
from tightship.graph import element_count


def data(context: KernelContext) -> Kernel:
    """Spread each position's gradient over the image by the filters."""
    window = window_between(
        context, context.output_shape()[2:], context.shape(0)[2:], context.shape(1)[2:]
    )
    return spread_kernel(context, window)


def weights(context: KernelContext) -> Kernel:
    """Sum products of gradients and columns over images and tiles."""
    dtype, (filters, channels, *taps) = context.dtype(0), covered(context.integers("shape"))
    require(is_real(dtype))
    dy, x = context.shape(0), context.shape(1)
    window = window_between(context, x[2:], dy[2:], taps)
    groups = context.integer("group", 1)
    layout = ScratchLayout()
    columns = Columns(window, channels, dtype, layout)
    product = layout.slot(dtype, (filters // groups, columns.height))
    sums = layout.slot(np.float64, (filters,))
    width, positions = columns.row_width, element_count(window.positions)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        each, out = product.of(scratch), outputs[0]
        gradients = inputs[0].reshape((dy[0] * groups, filters // groups, positions))
        if out is not None:
            out.fill(0)
            total = out.reshape((groups, filters // groups, columns.height))
            for index, image in enumerate(inputs[1].reshape((-1, channels, *x[2:]))):
                for start, stop in columns.tiles():
                    tile = gradients[index][:, start * width : stop * width]
                    np.matmul(tile, columns.of(image, start, stop, scratch).T, out=each)
                    np.add(total[index % groups], each, out=total[index % groups])
        if len(outputs) > 1 and outputs[1] is not None:
            total = sums.of(scratch)
            np.add.reduce(inputs[0].reshape((dy[0], filters, positions)), axis=(0, 2), out=total)
            np.copyto(outputs[1], total, casting="unsafe")

    return Kernel("ConvGradWeights", run, layout.size_bytes)


def _pool(context: KernelContext, image: tuple[int, ...]) -> Window:
    kernel = context.integers("kernel_shape") or ()
    return window_between(context, image[2:], context.shape(0)[2:], kernel)


def max_pool_grad(context: KernelContext) -> Kernel:
    """Pass gradients to the first of the largest elements of each window."""
    dtype, x_shape = context.dtype(0), context.shape(1)
    require(is_real(dtype))
    window, shape = _pool(context, x_shape), context.shape(0)[1:]
    start = lowest(dtype)
    layout = ScratchLayout()
    best, share = (layout.slot(dtype, shape) for _ in range(2))
    free, hit = (layout.slot(np.bool_, shape) for _ in range(2))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        largest, part = best.of(scratch), share.of(scratch)
        untaken, is_it = free.of(scratch), hit.of(scratch)
        outputs[0].fill(0)
        for dy, x, dx in zip(inputs[0], inputs[1], outputs[0], strict=True):
            largest.fill(start)
            for _, into, source in window.taps():
                place = largest[(slice(None), *into)]
                np.maximum(place, x[(slice(None), *source)], out=place)
            untaken.fill(1)
            for _, into, source in window.taps():
                at, of = (slice(None), *into), (slice(None), *source)
                np.equal(x[of], largest[at], out=is_it[at])
                np.logical_and(is_it[at], untaken[at], out=is_it[at])
                np.logical_xor(untaken[at], is_it[at], out=untaken[at])
                np.multiply(dy[at], is_it[at], out=part[at])
                np.add(dx[of], part[at], out=dx[of])

    return Kernel("MaxPoolGrad", run, layout.size_bytes)


def average(context: KernelContext) -> Kernel:
    """Divide each gradient among the elements that its window counted."""
    require(is_real(context.dtype(0)))
    window = _pool(context, context.output_shape())
    regions = list(equal_counts(window, limits_of_average(context, window)))
    layout = ScratchLayout()
    shares = layout.slot(context.dtype(0), context.shape(0))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        share, dx = shares.of(scratch), outputs[0]
        for region, count in regions:
            np.divide(inputs[0][(..., *region)], count, out=share[(..., *region)])
        dx.fill(0)
        for _, into, source in window.taps():
            part = dx[(..., *source)]
            np.add(part, share[(..., *into)], out=part)

    return Kernel("AveragePoolGrad", run, layout.size_bytes)
