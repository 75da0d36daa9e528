"""Geometry of convolution and pooling: where the taps of a sliding window fall."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tightship.engine.kernels.kernel_context import KernelContext

Index = tuple[Any, ...]
"""Int or slice for each spatial axis."""


@dataclass(frozen=True, slots=True)
class Window:
    """Window that slides over an image; all tuples have one entry for each spatial axis.

    Tap k of position p reads element `p * stride + k * dilation - pad` of the image, if it is
    inside.
    """

    image: tuple[int, ...]
    positions: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]

    @property
    def is_identity(self) -> bool:
        """Whether position p reads element p alone."""
        return (
            self.image == self.positions
            and max((*self.kernel, *self.strides), default=1) == 1
            and not any(self.pads)
        )

    def reads_padding(self) -> bool:
        """Whether a tap of a position falls outside the image."""
        return any(
            self._reach(axis, tap) != (0, self.positions[axis])
            for axis, length in enumerate(self.kernel)
            for tap in range(length)
        )

    def taps(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[Index, Index, Index]]:
        """Yield each tap with the positions at which it is inside the image, and what it reads.

        Positions of the first axis are limited to `[start, stop)` and counted from `start`.
        """
        for tap in itertools.product(*(range(length) for length in self.kernel)):
            into, source = [], []
            for axis, index in enumerate(tap):
                low, high = self._reach(axis, index)
                origin = 0
                if axis == 0:
                    origin = start
                    low, high = max(low, start), high if stop is None else min(high, stop)
                if low >= high:
                    break
                stride = self.strides[axis]
                first = low * stride + index * self.dilations[axis] - self.pads[axis]
                into.append(slice(low - origin, high - origin))
                source.append(slice(first, first + (high - low - 1) * stride + 1, stride))
            else:
                yield tap, tuple(into), tuple(source)

    def _reach(self, axis: int, tap: int) -> tuple[int, int]:
        """Return the positions `[low, high)` at which a tap is inside the image."""
        shift = self.pads[axis] - tap * self.dilations[axis]
        stride = self.strides[axis]
        low = max(-(-shift // stride), 0)
        high = min((self.image[axis] - 1 + shift) // stride + 1, self.positions[axis])
        return low, max(high, low)


def window_of(context: KernelContext, kernel: Sequence[int]) -> Window:
    """Return the window of a convolution or a pool, by its attributes and its output's shape."""
    return window_between(context, context.shape(0)[2:], context.output_shape()[2:], kernel)


def window_between(
    context: KernelContext,
    image: tuple[int, ...],
    positions: tuple[int, ...],
    kernel: Sequence[int],
) -> Window:
    """Return the window that a node's attributes describe, between two images of known lengths."""
    rank = len(image)
    strides = context.integers("strides") or (1,) * rank
    dilations = context.integers("dilations") or (1,) * rank
    mode = context.text("auto_pad", "NOTSET")
    if mode == "NOTSET":
        pads = (context.integers("pads") or (0,) * rank)[:rank]
    elif mode == "VALID":
        pads = (0,) * rank
    else:
        total = [
            max((p - 1) * stride + (k - 1) * dilation + 1 - length, 0)
            for length, p, k, stride, dilation in zip(
                image, positions, kernel, strides, dilations, strict=True
            )
        ]
        pads = tuple((t + (mode == "SAME_LOWER")) // 2 for t in total)
    return Window(image, positions, tuple(kernel), strides, dilations, pads)


def ends_of_padding(context: KernelContext, window: Window) -> tuple[int, ...]:
    """Return the end of the padded image on each axis, from the image's first element."""
    rank = len(window.image)
    pads = context.integers("pads")
    if context.text("auto_pad", "NOTSET") == "NOTSET":
        after = pads[rank:] if pads else (0,) * rank
        return tuple(length + pad for length, pad in zip(window.image, after, strict=True))
    return tuple(
        max(length, (p - 1) * stride + (k - 1) * dilation + 1 - pad)
        for length, p, k, stride, dilation, pad in zip(
            window.image,
            window.positions,
            window.kernel,
            window.strides,
            window.dilations,
            window.pads,
            strict=True,
        )
    )
