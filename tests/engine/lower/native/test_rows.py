"""Reductions, normalizations and softmax against NumPy's kernels."""

from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.kernels.typed import Typed, typed
from tests.engine.native_tier import assert_as_numpy, run_natively

REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
SHAPES = hnp.array_shapes(min_dims=0, max_dims=5, max_side=5)
THREADS = st.integers(1, 3)


def ramp(shape: tuple[int, ...], dtype: Any) -> Any:
    count = int(np.prod(shape, dtype=int))
    return (
        ((np.arange(count) * 37 % 41 + 1) / (8 if "f" in dtype else 1)).astype(dtype).reshape(shape)
    )


def assert_close(case: Typed, threads: int = 1) -> None:
    found = run_natively(case.node, case.inputs, case.like, threads)
    assert found is not None, f"no native kernel covers {case.node}"
    for result, wanted in zip(found, case.run(), strict=True):
        assert result is not None
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        rtol = {"float16": 4e-3, "float32": 2e-5}.get(result.dtype.name, 1e-9)
        np.testing.assert_allclose(result, wanted, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", REDUCTIONS)
@given(SHAPES, st.sampled_from(["f2", "f4", "f8", "i4", "i8", "u8"]), THREADS, st.data())
def test_any_axes_are_reduced_as_numpy_does(name, shape, dtype, threads, data):
    if name in ("LogSumExp", "Prod", "L2") and dtype != "f8":
        dtype = "f4"
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True)) if shape else []
    x = ramp(shape, dtype) / np.array(40, dtype) if name == "Prod" else ramp(shape, dtype)
    case = typed(
        f"Reduce{name}", x, np.array(axes, np.int64), keepdims=data.draw(st.integers(0, 1))
    )
    assert_close(case, threads)


@pytest.mark.parametrize("axes", [[0], [1], [0, 1], [0, 2]])
@pytest.mark.parametrize("name", ["Sum", "Max", "LogSumExp"])
def test_long_rows_and_columns_are_reduced_in_blocks(name, axes):
    x = ramp((37, 1300, 3), "f4")
    assert_close(typed(f"Reduce{name}", x, np.array(axes, np.int64)), 3)


@pytest.mark.parametrize("name", ["Max", "Min", "Sum", "Mean", "LogSumExp"])
def test_a_nan_anywhere_is_the_result_and_infinities_are_kept(name):
    x = np.array([[1, np.nan, 2], [np.inf, 0, 1], [-np.inf] * 3], np.float32)
    for axis in (0, 1):
        assert_close(typed(f"Reduce{name}", x, np.array([axis], np.int64)))


def test_a_long_sum_is_more_exact_than_float32():
    x = np.full(1_000_001, 0.1, np.float32)
    case = typed("ReduceSum", x, np.array([0], np.int64), keepdims=0)
    (found,) = run_natively(case.node, case.inputs, case.like) or [None]
    assert found is not None
    assert abs(float(found) - 100000.10149) < 0.01


@given(hnp.array_shapes(min_dims=1, max_dims=3, max_side=36), st.data(), THREADS)
def test_softmax_along_any_axis(shape, data, threads):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    for dtype in ("f4", "f8"):
        for name in ("Softmax", "LogSoftmax"):
            assert_close(typed(name, ramp(shape, dtype), axis=axis), threads)


def test_softmax_of_one_infinity_and_of_huge_scores():
    x = np.array([[-np.inf, 0, 1], [3e38, 3e38, -3e38], [np.nan, 1, 2]], np.float32)
    assert_close(typed("Softmax", x))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("shape", [(2, 6), (3, 8, 5), (2, 4, 30, 40)])
def test_normalizations_with_parameters_of_each_kind(dtype, shape):
    x = ramp(shape, dtype)
    channel, last = ramp(shape[1:2], dtype), ramp(shape[-1:], dtype)
    assert_close(typed("LayerNormalization", x, last, last), 2)
    assert_close(typed("LayerNormalization", x, last))
    assert_close(typed("RMSNormalization", x, last, version=23), 3)
    if len(shape) > 2:
        assert_close(typed("InstanceNormalization", x, channel, channel), 2)
        group = {"num_groups": 2, "like": [x]}
        assert_close(typed("GroupNormalization", x, channel, channel, version=21, **group))
        assert_close(typed("GroupNormalization", x, channel[:2], channel[:2], version=18, **group))


def test_statistics_of_a_layer_norm_come_out_too():
    x = ramp((4, 3, 50), "f4")
    parameters = ramp((3, 50), "f4")
    assert_close(typed("LayerNormalization", x, parameters, None, outputs=3, axis=1))


@pytest.mark.parametrize("name", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_extremes_of_float32_are_exact_and_a_nan_wins_wherever_it_is(name, axis):
    x = ramp((130, 130), "f4") + np.float32(1e7)
    axes = np.array([axis], np.int64)
    assert_as_numpy(typed(name, x, axes))
    for place in (0, 63, 64, 128, 129):
        x[place, place] = np.nan
    assert_as_numpy(typed(name, x, axes), 2)
    assert_as_numpy(typed(name, np.zeros((3, 0), np.float32), np.array([1], np.int64)))
