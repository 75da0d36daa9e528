"""Pools: one pass over the output for each tap of the window."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.numbers import is_number, is_real, lowest
from tightship.engine.kernels.scratch import Booking
from tightship.engine.kernels.site import Builder, Site, require
from tightship.engine.kernels.window import Index, Window, ends_of_padding, window_of
from tightship.graph import element_count


def pool_window(site: Site) -> Window:
    """The window of a pool, from its attributes and its output's shape."""
    return window_of(site, site.integers("kernel_shape") or ())


def _largest(site: Site) -> Kernel:
    """The largest element of each window; the output of indices is not covered."""
    require(not site.has_output(1) and is_number(site.dtype(0)))
    window = pool_window(site)
    start = lowest(site.dtype(0))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        x, out = inputs[0], outputs[0]
        out.fill(start)
        for _tap, into, source in window.taps():
            part = out[(..., *into)]
            np.maximum(part, x[(..., *source)], out=part)

    return Kernel("MaxPool", run)


def _average(site: Site) -> Kernel:
    """The mean of each window; padding counts where `count_include_pad` says so."""
    require(is_real(site.dtype(0)))
    window = pool_window(site)
    regions = list(_equal_counts(window, limits_of_average(site, window)))

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


def limits_of_average(site: Site, window: Window) -> list[tuple[int, int]]:
    """By spatial axis, the elements `[start, stop)` that count; padding may be among them."""
    if site.integer("count_include_pad", 0):
        ends = ends_of_padding(site, window)
        return [(-pad, end) for pad, end in zip(window.pads, ends, strict=True)]
    return [(0, length) for length in window.image]


def _equal_counts(window: Window, limits: Sequence[tuple[int, int]]) -> Iterator[tuple[Index, int]]:
    """Regions of positions whose windows have equally many taps within `limits`."""
    runs = [list(_runs(window, axis, limit)) for axis, limit in enumerate(limits)]
    for parts in itertools.product(*runs):
        yield tuple(part for part, _ in parts), element_count([taps for _, taps in parts])


def _runs(window: Window, axis: int, limit: tuple[int, int]) -> Iterator[tuple[slice, int]]:
    """Positions of one axis in runs of equally many taps within the limit."""

    def count(position: int) -> int:
        first = position * window.strides[axis] - window.pads[axis]
        reads = (first + tap * window.dilations[axis] for tap in range(window.kernel[axis]))
        return sum(limit[0] <= element < limit[1] for element in reads)

    start = 0
    for taps, run in itertools.groupby(range(window.positions[axis]), count):
        stop = start + sum(1 for _ in run)
        yield slice(start, stop), taps
        start = stop


def _power_mean(site: Site) -> Kernel:
    """The p-norm of each window."""
    dtype = site.dtype(0)
    require(is_real(dtype))
    window, order = pool_window(site), site.integer("p", 2)
    booking = Booking()
    power = booking.slot(dtype, site.shape(0))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        powers, out = power.of(scratch), outputs[0]
        np.absolute(inputs[0], out=powers)
        np.power(powers, order, out=powers)
        out.fill(0)
        for _tap, into, source in window.taps():
            part = out[(..., *into)]
            np.add(part, powers[(..., *source)], out=part)
        np.power(out, 1 / order, out=out)

    return Kernel("LpPool", run, booking.size_bytes)


def _global(ufunc: np.ufunc, *, mean: bool) -> Builder:
    def build(site: Site) -> Kernel:
        shape = site.shape(0)
        require(is_real(site.dtype(0)) and len(shape) >= 2)
        axes, count = tuple(range(2, len(shape))), element_count(shape[2:])

        def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
            (out,) = outputs
            ufunc.reduce(inputs[0], axis=axes, out=out, keepdims=True)
            if mean:
                np.divide(out, count, out=out)

        return Kernel(site.node.operator, run)

    return build


POOLING: Mapping[str, Builder] = {
    "AveragePool": _average,
    "GlobalAveragePool": _global(np.add, mean=True),
    "GlobalMaxPool": _global(np.maximum, mean=False),
    "LpPool": _power_mean,
    "MaxPool": _largest,
}
