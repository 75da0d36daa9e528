"""Resize and Upsample: one axis after another, as weighted sums of neighbouring elements."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, axis_of, require
from tightship.engine.kernels.numbers import is_real
from tightship.engine.kernels.scratch import ScratchLayout, Slot

Positions = NDArray[np.float64]

ROUNDINGS: Mapping[str, Callable[[Positions], Positions]] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
}


@dataclass(frozen=True, slots=True)
class Taps:
    """Indices and weights of the elements that each output position of an axis reads."""

    axis: int
    indices: NDArray[np.int64]
    weights: Array | None
    """Weights of (taps, length); None if one element is copied."""

    @property
    def length(self) -> int:
        """Length of the axis after resizing."""
        return int(self.indices.shape[1])

    def apply(self, x: Array, out: Array, term: Array | None) -> None:
        """Resize one axis of x; `term` is like out, needed if there are weights."""
        if self.weights is None:
            np.take(x, self.indices[0], axis=self.axis, out=out, mode="clip")
            return
        assert term is not None
        along = (-1,) + (1,) * (x.ndim - self.axis - 1)
        out.fill(0)
        for index, weight in zip(self.indices, self.weights, strict=True):
            np.take(x, index, axis=self.axis, out=term, mode="clip")
            np.multiply(term, weight.reshape(along), out=term)
            np.add(out, term, out=out)


def _coordinates(context: KernelContext, length: int, resized: int, scale: float) -> Positions:
    """Return the coordinate of each output position among the input's elements."""
    mode = context.text("coordinate_transformation_mode", "half_pixel")
    position = np.arange(resized, dtype=np.float64)
    exact = scale * length
    if mode == "asymmetric" or context.version < 11:
        return position / scale
    if mode == "align_corners":
        return position * (length - 1) / (exact - 1) if exact != 1 else np.zeros(resized)
    if mode == "pytorch_half_pixel" and resized == 1:
        return np.zeros(1)
    shift = 0.0
    if mode == "half_pixel_symmetric":
        shift = length / 2 * (1 - resized / exact)
    else:
        require(mode in ("half_pixel", "pytorch_half_pixel"))
    return shift + (position + 0.5) / scale - 0.5


def _triangle(distance: Positions) -> Positions:
    result: Positions = np.maximum(1 - np.abs(distance), 0)
    return result


def _cubic(distance: Positions, a: float) -> Positions:
    """Evaluate Keys' piecewise cubic, 0 beyond a distance of 2."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    result: Positions = np.where(x <= 1, near, np.where(x < 2, far, 0.0))
    return result


def _taps(context: KernelContext, axis: int, scale: float) -> Taps:
    length, resized = context.shape(0)[axis], context.output_shape()[axis]
    at = _coordinates(context, length, resized, scale)
    mode = context.text("mode", "nearest")
    if mode == "nearest":
        rounding = context.text(
            "nearest_mode", "round_prefer_floor" if context.version >= 11 else "floor"
        )
        nearest = np.clip(ROUNDINGS[rounding](at), 0, length - 1)
        return Taps(axis, nearest.astype(np.int64)[None], None)
    a = context.number("cubic_coeff_a", -0.75)
    reach = 2 if mode == "cubic" else 1
    width = max(1 / scale, 1.0) if context.integer("antialias", 0) else 1.0
    count = math.ceil(2 * reach * width) + 1
    index = np.floor(at - reach * width) + 1 + np.arange(count, dtype=np.float64)[:, None]
    distance = (index - at) / width
    weights = _cubic(distance, a) if mode == "cubic" else _triangle(distance)
    if context.integer("exclude_outside", 0):
        weights *= (index >= 0) & (index < length)
    weights /= weights.sum(0)
    inside = np.clip(index, 0, length - 1).astype(np.int64)
    used = np.flatnonzero(np.abs(weights).max(1, initial=0))
    return Taps(axis, inside[used], weights[used].astype(context.dtype(0)))


def resize_scales(context: KernelContext) -> list[float]:
    """Return the ratio of the output's length to the input's for each axis."""
    shape, resized = context.shape(0), context.output_shape()
    axes = context.integers("axes") or tuple(range(len(shape)))
    at = [axis_of(axis, len(shape)) for axis in axes]
    given = _given_scales(context)
    scales = [1.0] * len(shape)
    if given is None:
        ratios = [resized[axis] / shape[axis] for axis in at]
        policy = context.text("keep_aspect_ratio_policy", "stretch")
        sizes = _filled(context, 3)
        if policy != "stretch" and sizes is not None:
            wanted = [int(n) / shape[axis] for n, axis in zip(sizes, at, strict=True)]
            ratios = [(min if policy == "not_larger" else max)(wanted)] * len(at)
    else:
        ratios = given
    for axis, ratio in zip(at, ratios, strict=True):
        scales[axis] = ratio
    return scales


def _given_scales(context: KernelContext) -> list[float] | None:
    """Return scales from an input, or from the attribute that Upsample has in opset 7."""
    scales = context.node.attributes.get("scales")
    if isinstance(scales, tuple):
        return [float(scale) for scale in scales]
    elements = _filled(context, 1 if context.version < 11 else 2)
    return None if elements is None else [float(scale) for scale in elements]


def _filled(context: KernelContext, index: int) -> Array | None:
    """Return a parameter; one without elements counts as left out."""
    elements = context.parameter(index)
    return elements if elements is not None and elements.size else None


def nearest_positions(context: KernelContext) -> list[NDArray[np.int64]]:
    """Return the element that each position of each axis takes in mode nearest.

    Raises:
        NotCoveredError: The mode is another, scales are known only while running, or `roi` crops.
    """
    require(context.text("mode", "nearest") == "nearest")
    taken = [np.arange(length, dtype=np.int64) for length in context.shape(0)]
    for taps in resize_taps(context):
        taken[taps.axis] = taps.indices[0]
    return taken


def resize_taps(context: KernelContext) -> list[Taps]:
    """Return the taps of each axis that changes.

    Raises:
        NotCoveredError: `roi` crops, an axis is empty, or scales are known only while running.
    """
    shape = context.shape(0)
    require(context.version >= 7 and 0 not in shape and 0 not in context.output_shape())
    return [
        _taps(context, axis, scale)
        for axis, scale in enumerate(resize_scales(context))
        if scale != 1 or context.output_shape()[axis] != shape[axis]
    ]


def resize_kernel(context: KernelContext) -> Kernel:
    """Resize; elements outside repeat those at the edge, and cropping by `roi` is not covered."""
    require(is_real(context.dtype(0)) or context.text("mode", "nearest") == "nearest")
    passes = resize_taps(context)
    layout = ScratchLayout()
    stages, terms = _book(context, passes, layout)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        x = inputs[0]
        if not passes:
            np.copyto(outputs[0], x)
        for taps, stage, term in zip(passes, stages, terms, strict=True):
            out = outputs[0] if stage is None else stage.of(scratch)
            taps.apply(x, out, None if term is None else term.of(scratch))
            x = out

    return Kernel(context.node.operator, run, layout.size_bytes)


def _book(
    context: KernelContext, passes: list[Taps], layout: ScratchLayout
) -> tuple[list[Slot | None], list[Slot | None]]:
    """Book scratch for the result of each pass, None for the last, and for its terms."""
    stages: list[Slot | None] = []
    terms: list[Slot | None] = []
    shape = context.shape(0)
    for taps in passes:
        shape = (*shape[: taps.axis], taps.length, *shape[taps.axis + 1 :])
        last = taps is passes[-1]
        stages.append(None if last else layout.slot(context.dtype(0), shape))
        terms.append(None if taps.weights is None else layout.slot(context.dtype(0), shape))
    return stages, terms
