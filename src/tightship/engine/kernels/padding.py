"""Pad: copies the input into the output part by part, mirrored or repeated."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, axis_of, require

Part = tuple[slice, slice]
"""Target and source ranges along an axis; one may repeat."""


def padding(context: KernelContext) -> tuple[str, list[tuple[int, int]]]:
    """Return the mode of a Pad, and the elements added before and after each axis.

    Negative numbers remove elements. Pads are attributes before opset 11, inputs since.

    Raises:
        NotCoveredError: Pads are known only while running.
    """
    rank = len(context.shape(0))
    given = context.integers("pads" if context.version >= 2 else "paddings")
    if context.version >= 11:
        given = context.axes(1, "pads")
    require(given is not None)
    axes = context.axes(3) if context.version >= 18 and context.has_input(3) else None
    return context.text("mode", "constant"), _by_axis(given or (), axes, rank)


def pad_kernel(context: KernelContext) -> Kernel:
    mode, pads = padding(context)
    parts = [list(_parts(mode, d, *pad)) for d, pad in zip(context.shape(0), pads, strict=True)]
    fill = context.number("value", 0.0)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        x, (out,) = inputs[0], outputs
        if mode == "constant":
            given_fill = inputs[2] if len(inputs) > 2 else None
            np.copyto(out, fill if given_fill is None else given_fill.reshape(()), casting="unsafe")
        for choice in product(*parts):
            into = tuple(target for target, _ in choice)
            np.copyto(out[into], x[tuple(source for _, source in choice)])

    return Kernel("Pad", run)


def _by_axis(
    pads: tuple[int, ...], axes: tuple[int, ...] | None, rank: int
) -> list[tuple[int, int]]:
    chosen = range(rank) if axes is None else [axis_of(axis, rank) for axis in axes]
    require(len(pads) == 2 * len(chosen))
    result = [(0, 0)] * rank
    for place, axis in enumerate(chosen):
        result[axis] = (pads[place], pads[place + len(chosen)])
    return result


def _parts(mode: str, length: int, before: int, after: int) -> Iterator[Part]:
    """Yield parts that cover the padded axis, or for `constant` the part from the input.

    Element i of the padded axis stands for element i - before of an endless axis, of which the
    input is [0, length).
    """
    yield from _interior(length, before, after)
    if mode == "constant" or length == 0:
        return
    for low, high in ((-before, 0), (length, length + after)):
        if mode == "edge" and low < high:
            edge = 0 if low < 0 else length - 1
            yield slice(low + before, high + before), slice(edge, edge + 1)
        elif low < high:
            yield from _periods(mode, length, before, low, high)


def _interior(length: int, before: int, after: int) -> Iterator[Part]:
    low, high = max(-before, 0), length + min(after, 0)
    if low < high:
        yield slice(low + before, high + before), slice(low, high)


def _periods(mode: str, length: int, before: int, low: int, high: int) -> Iterator[Part]:
    """Yield parts of the endless axis that repeats the input, or mirrors it without its edges."""
    period = length if mode == "wrap" or length == 1 else length - 1
    start = low
    while start < high:
        turn, phase = divmod(start, period)
        stop = min((turn + 1) * period, high)
        count = stop - start
        if mode == "wrap" or turn % 2 == 0:
            source = slice(phase, phase + count)
        else:
            first = length - 1 - phase
            last = first - count
            source = slice(first, last if last >= 0 else None, -1)
        yield slice(start + before, stop + before), source
        start = stop
