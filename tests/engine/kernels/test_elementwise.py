import math
import operator
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.kernels.node_suite import assert_close
from tests.engine.kernels.typed import typed
from tightship.graph import DType

SHAPES = hnp.mutually_broadcastable_shapes(num_shapes=2, min_dims=0, max_dims=3, min_side=0)
INTS = st.integers(-(2**31), 2**31 - 1)
ORDINARY = st.floats(-1e3, 1e3, width=32)


@given(SHAPES, st.sampled_from(["float16", "float32", "float64", "int32", "uint8"]), st.data())
def test_operands_broadcast_as_numpys_do_scalars_and_empty_ones_included(shapes, dtype, data):
    elements = {"min_value": 0, "max_value": 9}
    x, y = (data.draw(hnp.arrays(dtype, s, elements=elements)) for s in shapes.input_shapes)
    (result,) = typed("Add", x, y).run()
    assert result.shape == shapes.result_shape
    np.testing.assert_array_equal(result, x + y)


@given(st.lists(st.tuples(INTS, INTS.filter(bool)), min_size=1))
def test_integer_quotients_are_truncated_toward_zero(pairs):
    left, right = np.array(pairs, np.int32).T.copy()
    (result,) = typed("Div", left.astype(np.int64), right.astype(np.int64)).run()
    expected = [int(math.copysign(abs(a) // abs(b), a * b)) if a else 0 for a, b in pairs]
    assert result.tolist() == expected


@given(st.lists(st.tuples(INTS, INTS.filter(bool)), min_size=1))
def test_remainders_take_the_sign_of_the_divisor_or_with_fmod_of_the_dividend(pairs):
    left, right = np.array(pairs, np.int64).T.copy()
    (floored,) = typed("Mod", left, right).run()
    (truncated,) = typed("Mod", left, right, fmod=1).run()
    assert floored.tolist() == [a % b for a, b in pairs]
    assert truncated.tolist() == [int(math.copysign(abs(a) % abs(b), a)) for a, b in pairs]


def test_division_by_zero_of_floats_gives_infinities_without_a_warning():
    x = np.array([1, -1, 0], np.float32)
    (result,) = typed("Div", x, np.zeros(3, np.float32)).run()
    np.testing.assert_array_equal(result, [np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("name", ["Max", "Min"])
def test_a_nan_among_the_operands_is_the_extremum(name: str):
    x = np.array([1, np.nan, 3], np.float32)
    (result,) = typed(name, x, np.full(3, 2, np.float32), x).run()
    assert np.isnan(result).tolist() == [False, True, False]


def test_clip_keeps_nan_and_lets_the_upper_limit_win():
    x = np.array([-2, 0, 2, np.nan], np.float32)
    low, high = (np.float32(v).reshape(()) for v in (1, -1))
    np.testing.assert_array_equal(typed("Clip", x, low, None).run()[0], [1, 1, 2, np.nan])
    np.testing.assert_array_equal(typed("Clip", x, low, high).run()[0], [-1, -1, -1, np.nan])
    old = typed("Clip", x, version=6, min=-1.0, max=1.0)
    np.testing.assert_array_equal(old.run()[0], [-1, 0, 1, np.nan])


@pytest.mark.parametrize("exponent", [np.float32(2.5), np.int64(3), np.float64(0.5)])
def test_powers_have_the_dtype_of_the_base(exponent: Any):
    base = np.array([0.5, 2, 9], np.float32)
    (result,) = typed("Pow", base, exponent.reshape(())).run()
    assert_close([result], [np.power(base, exponent).astype(np.float32)])


def test_an_integer_power_may_be_negative_only_by_another_tier():
    base = np.array([2, 3], np.int64)
    assert typed("Pow", base, np.array([3], np.int64)).run()[0].tolist() == [8, 27]
    assert not typed("Pow", base, np.array([-1], np.int64)).is_covered


def test_before_opset_7_an_axis_places_the_second_operand():
    x, y = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.array([1, 2, 3], np.float32)
    case = typed("Mul", x, y, version=6, axis=1, broadcast=1, like=[x])
    np.testing.assert_array_equal(case.run()[0], x * y[:, None])


@given(hnp.arrays(np.float32, (2, 3, 4), elements=ORDINARY), st.sampled_from([(3, 1), (1,), (4,)]))
def test_prelu_scales_what_is_not_positive(x, slope_shape):
    slope = np.linspace(-1, 2, math.prod(slope_shape)).astype(np.float32).reshape(slope_shape)
    np.testing.assert_array_equal(typed("PRelu", x, slope).run()[0], np.where(x > 0, x, x * slope))


@pytest.mark.parametrize(
    ("name", "compare"), [("Less", operator.lt), ("GreaterOrEqual", operator.ge)]
)
def test_comparisons_with_nan_are_false(name: str, compare: Any):
    x = np.array([1, np.nan, 3], np.float32)
    (result,) = typed(name, x, x[::-1].copy()).run()
    assert result.tolist() == compare(x, x[::-1]).tolist()


def test_where_chooses_by_broadcast_conditions():
    chosen = np.array([[True], [False]])
    x, y = np.arange(3, dtype=np.int64), np.zeros((2, 1), np.int64)
    assert typed("Where", chosen, x, y).run()[0].tolist() == [[0, 1, 2], [0, 0, 0]]


@pytest.mark.parametrize(
    ("positive", "negative", "expected"),
    [(1, 1, [True, True, False]), (1, 0, [True, False, False]), (0, 0, [False] * 3)],
)
def test_infinities_are_found_by_sign(positive: int, negative: int, expected: list[bool]):
    x = np.array([np.inf, -np.inf, np.nan], np.float32)
    case = typed("IsInf", x, detect_positive=positive, detect_negative=negative)
    assert case.run()[0].tolist() == expected


def test_brain_floats_are_added_by_their_own_loops():
    x = np.array([1.5, 2.0], DType.BFLOAT16.numpy)
    (result,) = typed("Add", x, x).run()
    assert result.dtype == x.dtype
    assert result.astype(np.float32).tolist() == [3, 4]


def test_numpy_loops_that_give_another_dtype_are_not_taken():
    x = np.array([1, 2], np.int32)
    assert not typed("Sqrt", x, like=[x]).is_covered


def test_one_operand_may_be_given_twice_and_overwritten():
    assert set(typed("Mul", np.ones(3, np.float32), np.ones(3, np.float32)).kernel.in_place) == {
        (0, 0),
        (0, 1),
    }
