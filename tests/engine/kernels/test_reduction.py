from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.kernels.typed import typed

DEFINITIONS = {
    "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k),
    "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
    "ReduceLogSumExp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
    "ReduceMax": lambda x, **k: np.max(x, **k, initial=-np.inf),
    "ReduceMean": np.mean,
    "ReduceMin": lambda x, **k: np.min(x, **k, initial=np.inf),
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
    "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("operator", DEFINITIONS)
@given(data=st.data())
def test_a_reduction_is_its_definition_over_any_axes(operator: str, data: Any):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    x = np.random.default_rng(3).uniform(0.5, 2, shape)
    every = st.integers(-len(shape), len(shape) - 1) if shape else st.nothing()
    axes = data.draw(st.lists(every, unique_by=lambda a: a % len(shape), max_size=len(shape)))
    keep = data.draw(st.booleans())
    expected = DEFINITIONS[operator](x, axis=tuple(axes) or None, keepdims=keep)
    given_axes = np.array(axes, np.int64) if axes else None
    like = [np.asarray(expected)]
    (result,) = typed(operator, x, given_axes, version=18, keepdims=int(keep), like=like).run()
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize(("operator", "version"), [("ReduceMax", 13), ("ReduceSum", 11)])
def test_axes_were_an_attribute_before(operator: str, version: int):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (result,) = typed(operator, x, version=version, axes=[-1], keepdims=0).run()
    assert result.tolist() == DEFINITIONS[operator](x, axis=-1).tolist()


def test_empty_axes_may_mean_that_nothing_is_reduced():
    x = np.array([-1, 2], np.float32)
    axes = np.zeros(0, np.int64)
    case = typed("ReduceSum", x, axes, version=13, noop_with_empty_axes=1, like=[x])
    assert case.run()[0].tolist() == [-1, 2]


def test_large_exponents_do_not_overflow():
    x = np.array([1000, 1000, -np.inf], np.float32)
    (result,) = typed("ReduceLogSumExp", x, version=18, keepdims=0).run()
    assert result == pytest.approx(1000 + np.log(2))


@pytest.mark.parametrize("extreme", [np.inf, -np.inf])
def test_infinite_exponents_stay_infinite(extreme: float):
    x = np.full(3, extreme, np.float32)
    assert typed("ReduceLogSumExp", x, version=18, keepdims=0).run()[0] == extreme


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
def test_a_nan_is_the_extremum_and_bools_have_one_too(operator: str):
    x = np.array([1, np.nan, 3], np.float32)
    assert np.isnan(typed(operator, x, version=18, keepdims=0).run()[0])
    flags = np.array([True, False])
    case = typed(operator, flags, version=20, keepdims=0)
    assert bool(case.run()[0]) == (operator == "ReduceMax")


@given(
    hnp.arrays(
        np.int32,
        hnp.array_shapes(min_dims=1, max_dims=3, max_side=4),
        elements={"max_value": 2, "min_value": 0},
    ),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_the_place_of_an_extremum_is_the_first_or_the_last(x, largest, last, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    find = np.argmax if largest else np.argmin
    expected = x.shape[axis] - 1 - find(np.flip(x, axis), axis) if last else find(x, axis)
    name = "ArgMax" if largest else "ArgMin"
    case = typed(name, x, axis=axis, keepdims=0, select_last_index=int(last))
    np.testing.assert_array_equal(case.run()[0], expected)
