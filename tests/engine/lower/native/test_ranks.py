"""Positions, order and running sums against NumPy's kernels and ONNX's reference."""

from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.kernels.typed import Typed, typed
from tests.engine.native_tier import assert_as_numpy, run_natively

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, max_side=9)
THREADS = st.integers(1, 3)
FEW = [np.nan, -np.inf, np.inf, -0.0, 0.0, 1.0, -1.0, 2.5]
"""Elements of which many are equal."""


def elements(draw: Any, shape: tuple[int, ...], dtype: str) -> Any:
    chosen = draw(hnp.arrays(np.intp, shape, elements=st.integers(0, len(FEW) - 1)))
    if "f" in dtype:
        return np.array(FEW, dtype)[chosen]
    limits = np.iinfo(dtype)
    return np.array([limits.min, limits.max, 0, 1, 2, 3, 4, 5], dtype)[chosen]


def assert_as_reference(case: Typed, threads: int = 1) -> None:
    results = run_natively(case.node, case.inputs, case.like, threads)
    assert results is not None, f"no native kernel covers {case.node}"
    for result, wanted in zip(results, case.reference(), strict=True):
        np.testing.assert_array_equal(result, wanted)


def top_k(x: Any, count: int, **options: Any) -> Typed:
    return typed("TopK", x, np.array([count], np.int64), outputs=2, **options)


@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
@given(SHAPES, st.sampled_from(["f4", "f8", "i1", "i2", "i4", "i8", "u1"]), THREADS, st.data())
def test_the_place_is_numpys_among_equal_elements_and_nans(name, shape, dtype, threads, data):
    options = {
        "axis": data.draw(st.integers(-len(shape), len(shape) - 1)),
        "keepdims": data.draw(st.integers(0, 1)),
        "select_last_index": data.draw(st.integers(0, 1)),
    }
    assert_as_numpy(typed(name, elements(data.draw, shape, dtype), **options), threads)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_places_in_long_rows_and_columns(axis, last):
    x = (np.arange(150 * 300 * 3) * 7919 % 1009).astype(np.float32).reshape(150, 300, 3)
    for name in ("ArgMax", "ArgMin"):
        assert_as_numpy(typed(name, x, axis=axis, select_last_index=last), 3)
        assert_as_numpy(typed(name, x[:, :, 0], axis=axis % 2, select_last_index=last), 3)


def test_a_position_in_an_empty_axis_is_not_covered():
    case = typed("ArgMax", np.zeros((2, 0), np.float32), axis=1)
    assert run_natively(case.node, case.inputs, case.like) is None


@given(SHAPES, st.sampled_from(["f4", "f8"]), THREADS, st.data())
def test_hardmax_is_one_at_the_first_largest_element(shape, dtype, threads, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    assert_as_numpy(typed("Hardmax", elements(data.draw, shape, dtype), axis=axis), threads)


@given(SHAPES, st.sampled_from(["f4", "f8", "i4", "i8"]), THREADS, st.data())
def test_the_best_are_the_references_lower_index_first(shape, dtype, threads, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    count = data.draw(st.integers(0, shape[axis]))
    largest = data.draw(st.integers(0, 1))
    x = elements(data.draw, shape, dtype)
    assert_as_reference(top_k(x, count, axis=axis, largest=largest), threads)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("count", [1, 5, 100, 3000, 5000])
def test_the_best_of_long_rows_pass_through_a_small_room(count, dtype):
    x = np.stack([np.arange(5000), -np.arange(5000), np.arange(5000) * 7919 % 1009])
    for largest in (0, 1):
        assert_as_reference(top_k(x.astype(dtype), count, largest=largest), 2)
        assert_as_reference(top_k(x.T.astype(dtype), count, largest=largest, axis=0), 2)


@given(SHAPES, st.sampled_from(["f4", "f8", "i4", "i8"]), THREADS, st.data())
def test_running_sums_are_numpys(shape, dtype, threads, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    options = {name: data.draw(st.integers(0, 1)) for name in ("exclusive", "reverse")}
    x = elements(data.draw, shape, dtype)
    results = typed("CumSum", x, np.array(axis, np.int32), **options)
    found = run_natively(results.node, results.inputs, results.like, threads)
    assert found is not None
    np.testing.assert_array_equal(found[0], results.run()[0])


@pytest.mark.parametrize("axis", [0, 1])
def test_running_sums_of_many_columns_and_of_empty_axes(axis):
    x = np.linspace(-1, 1, 70 * 300, dtype=np.float32).reshape(70, 300)
    for exclusive in (0, 1):
        assert_as_numpy(typed("CumSum", x, np.array(axis, np.int64), exclusive=exclusive), 3)
    assert_as_numpy(typed("CumSum", x[:, :0], np.array(axis, np.int64)))


@pytest.mark.parametrize("dtype", ["i1", "u1", "f4"])
def test_the_place_in_a_column_may_be_beyond_what_an_element_counts(dtype):
    x = np.zeros((400, 5), dtype)
    x[[0, 126, 128, 257, 399], range(5)] = 1
    for last in (0, 1):
        assert_as_numpy(typed("ArgMax", x, axis=0, select_last_index=last))
        assert_as_numpy(typed("ArgMin", x, axis=0, select_last_index=last))
