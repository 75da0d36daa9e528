"""Convolutions as matrix products over columns in scratch, a tile at a time."""

from collections.abc import Sequence

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, require
from tightship.engine.kernels.numbers import is_real
from tightship.engine.kernels.product import product
from tightship.engine.kernels.scratch import ScratchLayout
from tightship.engine.kernels.window import Index, Window, window_of
from tightship.graph import element_count

TILE_BYTES = 1 << 20
"""Most bytes of the columns of a tile, unless one row of positions takes more."""


class Columns:
    """Columns of (channel, tap) that the window reads at each position."""

    def __init__(
        self, window: Window, channels: int, dtype: np.dtype[np.generic], layout: ScratchLayout
    ) -> None:
        self.window = window
        self.channels = channels
        self.height = channels * element_count(window.kernel)
        self.row_width = element_count(window.positions[1:])
        row_bytes = max(self.height * self.row_width * dtype.itemsize, 1)
        self.tile_rows = min(max(TILE_BYTES // row_bytes, 1), max(window.positions[0], 1))
        self.has_padding = window.reads_padding()
        size = 0 if window.is_identity else self.height * self.tile_rows * self.row_width
        self.slot = layout.slot(dtype, (size,))

    def tiles(self) -> Sequence[tuple[int, int]]:
        """List ranges `[start, stop)` of the first spatial axis of the positions."""
        rows = self.window.positions[0]
        step = max(rows, 1) if self.window.is_identity else self.tile_rows
        return [(start, min(start + step, rows)) for start in range(0, rows, step)]

    def of(self, image: Array, start: int, stop: int, scratch: Array | None) -> Array:
        """Return the columns of a tile, (height, positions), of an image (channels, ...)."""
        if self.window.is_identity:
            return image.reshape((self.channels, -1))
        count = (stop - start) * self.row_width
        flat = self.slot.of(scratch)[: self.height * count]
        positions = (stop - start, *self.window.positions[1:])
        grid = flat.reshape((self.channels, *self.window.kernel, *positions))
        if self.has_padding:
            flat.fill(0)
        for tap, into, source in self.window.taps(start, stop):
            place: Index = (slice(None), *tap, *into)
            np.copyto(grid[place], image[(slice(None), *source)])
        return flat.reshape((self.height, count))


def conv(context: KernelContext) -> Kernel:
    dtype, weights = context.dtype(0), context.shape(1)
    require(is_real(dtype) and len(weights) >= 3)
    window = window_of(context, weights[2:])
    groups = context.integer("group", 1)
    filters_each = weights[0] // groups
    images = (context.shape(0)[0] * groups, weights[1], *window.image)
    per_filter = (weights[0],) + (1,) * len(window.image)
    layout = ScratchLayout()
    columns = Columns(window, weights[1], dtype, layout)
    width = columns.row_width

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        out = outputs[0]
        filters = inputs[1].reshape((groups, filters_each, columns.height))
        targets = out.reshape((images[0], filters_each, element_count(window.positions)))
        for index, image in enumerate(inputs[0].reshape(images)):
            for start, stop in columns.tiles():
                tile = targets[index][:, start * width : stop * width]
                gathered = columns.of(image, start, stop, scratch)
                product(filters[index % groups], gathered, tile)
        if len(inputs) > 2 and inputs[2] is not None:
            np.add(out, inputs[2].reshape(per_filter), out=out)

    return Kernel("Conv", run, layout.size_bytes)


def transposed(context: KernelContext) -> Kernel:
    weights = context.shape(1)
    require(len(weights) >= 3)
    return spread_kernel(context, _spread(context, weights[2:]))


def spread_kernel(context: KernelContext, window: Window) -> Kernel:
    """Make a kernel in which each input element adds to the outputs that its window covers."""
    dtype, weights = context.dtype(0), context.shape(1)
    require(is_real(dtype))
    groups, batch = context.integer("group", 1), context.shape(0)[0]
    inputs_each, filters_each = weights[0] // groups, weights[1]
    taps, positions = element_count(window.kernel), element_count(window.positions)
    chunk = min(max(TILE_BYTES // max(taps * positions * dtype.itemsize, 1), 1), filters_each)
    layout = ScratchLayout()
    shares = layout.slot(dtype, (chunk * taps * positions,))
    per_filter = (filters_each * groups,) + (1,) * len(window.image)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        out, flat = outputs[0], shares.of(scratch)
        if len(inputs) > 2 and inputs[2] is not None:
            np.copyto(out, inputs[2].reshape(per_filter))
        else:
            out.fill(0)
        sources = inputs[0].reshape((batch * groups, inputs_each, positions))
        filters = inputs[1].reshape((groups, inputs_each, filters_each * taps))
        targets = out.reshape((batch * groups, filters_each, *window.image))
        for index, source in enumerate(sources):
            for start in range(0, filters_each, chunk):
                stop = min(start + chunk, filters_each)
                part = filters[index % groups][:, start * taps : stop * taps]
                share = flat[: (stop - start) * taps * positions]
                product(part.T, source, share.reshape((-1, positions)))
                grid = share.reshape((stop - start, *window.kernel, *window.positions))
                _add_shares(window, grid, targets[index, start:stop])

    return Kernel(context.node.operator, run, layout.size_bytes)


def _add_shares(window: Window, grid: Array, target: Array) -> None:
    for tap, positions, covered in window.taps():
        into = target[(slice(None), *covered)]
        share: Index = (slice(None), *tap, *positions)
        np.add(into, grid[share], out=into)


def _spread(context: KernelContext, kernel: tuple[int, ...]) -> Window:
    """Return the window of a transposed convolution, whose image is the output."""
    positions, image = context.shape(0)[2:], context.output_shape()[2:]
    rank = len(image)
    strides = context.integers("strides") or (1,) * rank
    dilations = context.integers("dilations") or (1,) * rank
    extra = context.integers("output_padding") or (0,) * rank
    mode = context.text("auto_pad", "NOTSET")
    pads = context.integers("pads")
    if mode == "VALID":
        before: tuple[int, ...] = (0,) * rank
    elif mode == "NOTSET" and context.integers("output_shape") is None:
        before = pads[:rank] if pads else (0,) * rank
    else:
        total = [
            (p - 1) * stride + more + (k - 1) * dilation + 1 - length
            for p, length, k, stride, dilation, more in zip(
                positions, image, kernel, strides, dilations, extra, strict=True
            )
        ]
        before = tuple((max(t, 0) + (mode != "SAME_UPPER")) // 2 for t in total)
    return Window(image, positions, kernel, strides, dilations, before)
