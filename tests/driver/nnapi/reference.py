"""NNAPI's operations in NumPy and float64, from their definitions."""

import math

import numpy as np

from tests.driver.nnapi.network import RANGES

BOUNDS = ((-math.inf, math.inf), (0, math.inf), (-1, 1), (0, 6))


def real(array, kind):
    """Return the real numbers of stored elements."""
    if kind.operand_type in RANGES or kind.scale:
        return (array.astype(np.float64) - kind.zero_point) * kind.scale
    return array.astype(np.float64)


def stored(array, kind):
    """The nearest elements that a type has."""
    if kind.operand_type not in RANGES:
        return array
    return np.clip(np.rint(array / kind.scale) + kind.zero_point, *RANGES[kind.operand_type])


def activated(array, activation):
    return np.clip(array, *BOUNDS[activation])


def padding_of(scheme, length, kernel, stride, dilation):
    """Return the padding before and after, of SAME (1) and VALID (2)."""
    if scheme == 2:
        return 0, 0
    reach = (kernel - 1) * dilation + 1
    needed = max(0, (math.ceil(length / stride) - 1) * stride + reach - length)
    return needed // 2, needed - needed // 2


def windows(image, kernel, strides, dilations, pads):
    """Yield for each position of the output its indexes, and the window with NaN in the padding.

    Args:
        image: NHWC.
        kernel, strides, dilations: (height, width).
        pads: ((top, bottom), (left, right)).
    """
    padded = np.pad(image, ((0, 0), *pads, (0, 0)), constant_values=np.nan)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    counts = [(padded.shape[1 + axis] - reach[axis]) // strides[axis] + 1 for axis in (0, 1)]
    for row in range(counts[0]):
        for column in range(counts[1]):
            top, left = row * strides[0], column * strides[1]
            window = padded[
                :,
                top : top + reach[0] : dilations[0],
                left : left + reach[1] : dilations[1],
            ]
            yield counts, row, column, window


def over_windows(each, image, depth, *geometry):
    """NHWC of `depth` channels: `each` of every window."""
    result = None
    for counts, row, column, window in windows(image, *geometry):
        if result is None:
            result = np.empty((image.shape[0], *counts, depth))
        result[:, row, column] = each(window)
    return result


def convolution(image, weights, bias, *geometry):
    """Weights OHWI."""

    def each(window):
        return np.einsum("nhwi,ohwi->no", np.nan_to_num(window), weights) + bias

    return over_windows(each, image, len(weights), *geometry)


def depthwise(image, weights, bias, *geometry):
    """Weights 1HWO; channel `c` makes channels from `c * multiplier` on."""
    multiplier = weights.shape[3] // image.shape[3]

    def each(window):
        spread = np.repeat(np.nan_to_num(window), multiplier, axis=3)
        return np.sum(spread * weights, axis=(1, 2)) + bias

    return over_windows(each, image, weights.shape[3], *geometry)


def max_pool(image, *geometry):
    return over_windows(lambda w: np.nanmax(w, axis=(1, 2)), image, image.shape[3], *geometry)


def average_pool(image, *geometry):
    return over_windows(lambda w: np.nanmean(w, axis=(1, 2)), image, image.shape[3], *geometry)


def softmax(value, beta, axis):
    powers = np.exp(beta * (value - value.max(axis=axis, keepdims=True)))
    return powers / powers.sum(axis=axis, keepdims=True)


def assert_close(result, wanted, kind):
    """Equal to rounding; quantized elements to one step."""
    assert result.shape == wanted.shape
    if kind.operand_type in RANGES:
        assert np.abs(result.astype(np.int64) - stored(wanted, kind)).max() <= 1
    else:
        tolerance = 4e-3 if result.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(
            result.astype(np.float64), wanted, rtol=tolerance, atol=tolerance
        )
