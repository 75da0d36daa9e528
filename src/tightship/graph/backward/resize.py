"""Gradient of a Resize: that of each position, shared among the elements it was made of."""

from collections.abc import Callable, Iterator, Mapping
from math import prod

import numpy as np
from numpy.typing import NDArray

from tightship.graph.backward.gradient_context import GradientContext
from tightship.graph.constant import Inline

Positions = NDArray[np.float64]

_HALF_PIXEL = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel")
_ROUNDED = ("round_prefer_floor", "round_prefer_ceil")
_ROUNDINGS: Mapping[str, Callable[[Positions], Positions]] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
}


def resize_rule(at: GradientContext) -> Iterator[tuple[int, str]]:
    """Sum if whole factors repeat elements; else multiply along each axis."""
    if not at.wants(0):
        return
    shape, whole = at.shape(at.x()), at.shape(at.dy)
    if _is_repetition(at) and not any(n % m for m, n in zip(shape, whole, strict=True)):
        apart = [part for m, n in zip(shape, whole, strict=True) for part in (m, n // m)]
        axes = [axis for axis in range(1, len(apart), 2) if apart[axis] > 1]
        yield 0, at.reshaped(at.summed(at.reshaped(at.dy, apart), axes), shape)
        return
    if at.node.version < 11 or any(at.node.attributes.get(name) for name in _OTHER):
        raise at.refusal(f"is known from opset 11 on, and without {', '.join(_OTHER)}")
    gradient = at.dy
    for axis, scale in enumerate(_scales(at)):
        if shape[axis] != whole[axis] or scale != 1:
            gradient = _along(at, gradient, axis, scale)
    yield 0, gradient


_OTHER = ("antialias", "exclude_outside", "keep_aspect_ratio_policy")
"""Attributes with which positions are made of other elements."""


def _along(at: GradientContext, gradient: str, axis: int, scale: float) -> str:
    """Convert the gradient of one axis from positions to elements."""
    have = at.shape(gradient)
    length, resized = at.shape(at.x())[axis], have[axis]
    shares = _shares(at, length, resized, scale).astype(at.dtype(gradient).numpy)
    before, after = prod(have[:axis]), prod(have[axis + 1 :])
    shape = (*have[:axis], length, *have[axis + 1 :])
    if after == 1:
        held = at.tape.hold("gradient shares", Inline(shares))
        rows = at.reshaped(gradient, (before, resized))
        return at.reshaped(at.op("MatMul", rows, held, shape=(before, length)), shape)
    held = at.tape.hold("gradient shares", Inline(np.ascontiguousarray(shares.T)))
    stacks = at.reshaped(gradient, (before, resized, after))
    return at.reshaped(at.op("MatMul", held, stacks, shape=(before, length, after)), shape)


def _shares(at: GradientContext, length: int, resized: int, scale: float) -> Positions:
    """Return the share of each element (column) in each position (row)."""
    where = _coordinates(at, length, resized, scale)
    mode = _text(at, "mode", "nearest")
    shares = np.zeros((resized, length))
    rows = np.arange(resized)
    if mode == "nearest":
        rounded = _ROUNDINGS[_text(at, "nearest_mode", "round_prefer_floor")](where)
        shares[rows, np.clip(rounded, 0, length - 1).astype(int)] = 1
        return shares
    if mode != "linear":
        raise at.refusal(f"is known for the modes nearest and linear, not for `{mode}`")
    low = np.floor(where)
    for index, share in ((low, 1 - (where - low)), (low + 1, where - low)):
        np.add.at(shares, (rows, np.clip(index, 0, length - 1).astype(int)), share)
    return shares


def _coordinates(at: GradientContext, length: int, resized: int, scale: float) -> Positions:
    """Return the coordinate of each position among the elements."""
    mode = _text(at, "coordinate_transformation_mode", "half_pixel")
    place = np.arange(resized, dtype=np.float64)
    exact = scale * length
    if mode == "asymmetric":
        return place / scale
    if mode == "align_corners":
        return place * (length - 1) / (exact - 1) if exact != 1 else np.zeros(resized)
    if mode not in _HALF_PIXEL:
        raise at.refusal(f"is not known for `coordinate_transformation_mode` {mode}")
    if mode == "pytorch_half_pixel" and resized == 1:
        return np.zeros(1)
    shift = length / 2 * (1 - resized / exact) if mode == "half_pixel_symmetric" else 0.0
    return shift + (place + 0.5) / scale - 0.5


def _scales(at: GradientContext) -> list[float]:
    """Return how many positions there are for each element, by axis."""
    shape, whole = at.shape(at.x()), at.shape(at.dy)
    scales = [n / m for m, n in zip(shape, whole, strict=True)]
    given = at.parameter(2, "scales")
    if given is not None and given.size:
        chosen = at.node.attributes.get("axes")
        axes = chosen if isinstance(chosen, tuple) else range(len(shape))
        for axis, scale in zip(axes, given.reshape(-1).tolist(), strict=True):
            assert isinstance(axis, int)
            scales[axis] = scale
    return scales


def _is_repetition(at: GradientContext) -> bool:
    mode, place, rounding = (
        _text(at, name, default)
        for name, default in (
            ("mode", "nearest"),
            ("coordinate_transformation_mode", "half_pixel"),
            ("nearest_mode", "round_prefer_floor"),
        )
    )
    by_half = place in _HALF_PIXEL and rounding in _ROUNDED
    return mode == "nearest" and (by_half or (place, rounding) == ("asymmetric", "floor"))


def _text(at: GradientContext, name: str, default: str) -> str:
    value = at.node.attributes.get(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)
