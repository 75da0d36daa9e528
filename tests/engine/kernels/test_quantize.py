from typing import Any

import numpy as np
import pytest

from tests.engine.kernels.typed import typed

X = np.random.default_rng(17).uniform(-40, 40, (4, 6, 5)).astype(np.float32)


def of(dtype: Any, *elements: float) -> Any:
    return np.array(elements if len(elements) > 1 else elements[0], dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_quantizing_rounds_saturates_and_comes_back(dtype: Any, axis: int | None):
    count = 1 if axis is None else X.shape[axis]
    scale, zero = np.linspace(0.1, 0.4, count, dtype=np.float32), np.full(count, 3, dtype)
    if axis is None:
        scale, zero = scale.reshape(()), zero.reshape(())
    options = {} if axis is None else {"axis": axis}
    (quantized,) = typed("QuantizeLinear", X, scale, zero, **options).run()
    shape = [-1 if axis is not None and a == axis % 3 else 1 for a in range(3)]
    wide, limits = scale.reshape(shape if axis is not None else ()), np.iinfo(dtype)
    expected = np.clip(np.rint(X / wide) + 3, limits.min, limits.max)
    np.testing.assert_array_equal(quantized, expected)
    (back,) = typed("DequantizeLinear", quantized, scale, zero, **options).run()
    np.testing.assert_allclose(back, (expected - 3) * wide, rtol=1e-6)


def test_blocks_have_scales_of_their_own():
    scale = np.arange(1, 4 * 3 * 5 + 1, dtype=np.float32).reshape(4, 3, 5)
    zero = np.ones(scale.shape, np.int8)
    case = typed("QuantizeLinear", X, scale, zero, axis=1, block_size=2, version=21)
    np.testing.assert_array_equal(case.run()[0], case.reference()[0])
    back = typed("DequantizeLinear", case.run()[0], scale, zero, axis=1, block_size=2, version=21)
    np.testing.assert_allclose(back.run()[0], back.reference()[0])


def test_a_tensor_larger_than_a_block_is_quantized_whole():
    x = np.linspace(-9, 9, 40001).astype(np.float32).reshape(1, -1)
    (result,) = typed("QuantizeLinear", x, of(np.float32, 0.1), of(np.uint8, 128)).run()
    np.testing.assert_array_equal(result, np.clip(np.rint(x / np.float32(0.1)) + 128, 0, 255))


@pytest.mark.parametrize("offset", [-100, 0, 100])
def test_a_tensor_finds_its_own_scale(offset: float):
    x = X + np.float32(offset)
    case = typed("DynamicQuantizeLinear", x, outputs=3)
    quantized, scale, zero = case.run()
    expected = case.reference()
    assert scale == pytest.approx(expected[1])
    assert zero == expected[2]
    assert np.abs(quantized.astype(int) - expected[0]).max() <= 1
