from typing import Any

import numpy as np
import pytest

from tests.engine.kernels.typed import typed
from tightship.engine.kernels.blocks import BLOCK_ELEMENTS

RANDOM = np.random.default_rng(11)


def f32(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def normalized(x: Any, axes: tuple[int, ...], epsilon: float = 1e-5) -> Any:
    x = x.astype(np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_layers_are_normalised_over_trailing_axes(axis: int):
    x, front = f32(4, 5, 6) + 100, axis % 3
    scale, bias = f32(*x.shape[front:]), f32(*x.shape[front:])
    (result,) = typed("LayerNormalization", x, scale, bias, axis=axis).run()
    expected = normalized(x, tuple(range(front, 3))) * scale + bias
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)


def test_layers_give_their_statistics():
    x, scale = f32(3, 8), np.ones(8, np.float32)
    _, mean, inverse = typed("LayerNormalization", x, scale, None, outputs=3).run()
    np.testing.assert_allclose(mean, x.mean(1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5), rtol=1e-5)


def test_many_rows_and_rows_longer_than_a_block_are_all_normalised():
    for shape in ((BLOCK_ELEMENTS // 16 + 3, 17), (2, BLOCK_ELEMENTS + 5)):
        x = f32(*shape)
        scale = np.ones(shape[1], np.float32)
        (result,) = typed("RMSNormalization", x, scale, version=23).run()
        expected = x / np.sqrt(np.mean(x * x, 1, keepdims=True) + 1e-5)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_half_precision_is_normalised_in_float32():
    x = (f32(4, 64) * 200).astype(np.float16)
    scale = np.ones(64, np.float16)
    (result,) = typed("LayerNormalization", x, scale).run()
    np.testing.assert_allclose(result, normalized(x, (1,)), rtol=2e-3, atol=2e-3)


def test_instances_and_groups_are_normalised_each_alone():
    x, scale, bias = f32(2, 6, 3, 4), f32(6), f32(6)
    by_channel = scale[:, None, None], bias[:, None, None]
    (result,) = typed("InstanceNormalization", x, scale, bias).run()
    expected = normalized(x, (2, 3)) * by_channel[0] + by_channel[1]
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)
    (result,) = typed("GroupNormalization", x, scale, bias, num_groups=3, like=[x]).run()
    grouped = normalized(x.reshape(2, 3, 2, 3, 4), (2, 3, 4)).reshape(x.shape)
    np.testing.assert_allclose(
        result, grouped * by_channel[0] + by_channel[1], rtol=1e-3, atol=1e-4
    )


def test_before_opset_21_groups_have_one_scale_each():
    x, scale, bias = f32(2, 6, 4), f32(3), f32(3)
    case = typed("GroupNormalization", x, scale, bias, version=18, num_groups=3, like=[x])
    grouped = normalized(x.reshape(2, 3, 2, 4), (2, 3))
    expected = (grouped * scale[:, None, None] + bias[:, None, None]).reshape(x.shape)
    np.testing.assert_allclose(case.run()[0], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("version", [7, 9, 14, 15])
def test_a_batch_is_normalised_by_given_statistics(version: int):
    x, scale, bias, mean = f32(2, 3, 4), f32(3), f32(3), f32(3)
    variance = np.abs(f32(3)) + 0.1
    case = typed("BatchNormalization", x, scale, bias, mean, variance, version=version)
    s, b, m, v = (p[:, None] for p in (scale, bias, mean, variance))
    expected = (x - m) / np.sqrt(v + 1e-5) * s + b
    np.testing.assert_allclose(case.run()[0], expected, rtol=1e-4, atol=1e-5)


def test_training_has_no_kernel():
    parameters = [np.ones(3, np.float32)] * 4
    case = typed("BatchNormalization", f32(2, 3), *parameters, training_mode=1, outputs=3)
    assert not case.is_covered


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_a_local_response_sums_over_neighbouring_channels(size: int):
    x = f32(2, 6, 3, 2)
    (result,) = typed("LRN", x, size=size, alpha=0.1, bias=2.0, beta=0.5).run()
    for channel in range(6):
        first = max(channel - (size - 1) // 2, 0)
        squares = (x[:, first : channel + size // 2 + 1] ** 2).sum(1)
        expected = x[:, channel] / (2 + 0.1 / size * squares) ** 0.5
        np.testing.assert_allclose(result[:, channel], expected, rtol=1e-5)


@pytest.mark.parametrize("p", [1, 2])
def test_a_norm_of_zero_gives_zeros(p: int):
    x = np.array([[3, 4], [0, 0]], np.float32)
    (result,) = typed("LpNormalization", x, axis=1, p=p).run()
    np.testing.assert_allclose(result, [np.array([3, 4]) / (7 if p == 1 else 5), [0, 0]])
