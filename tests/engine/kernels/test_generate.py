from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.kernels.typed import typed
from tightship.engine.kernels.generate import count_up


def scalar(value: float, dtype: Any = np.int64) -> Any:
    return np.array(value, dtype)


@given(st.integers(0, 300), st.integers(-3, 3))
def test_counting_up_is_exact(size: int, step: int):
    out = np.empty(size, np.int64)
    count_up(out, step)
    assert out.tolist() == [step * i for i in range(size)]


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-3, 3).filter(bool))
def test_a_range_is_pythons(start: int, stop: int, step: int):
    expected = np.array(range(start, stop, step), np.int64)
    case = typed("Range", scalar(start), scalar(stop), scalar(step), like=[expected])
    assert case.run()[0].tolist() == expected.tolist()


@given(st.integers(0, 4), st.integers(0, 4), st.integers(-6, 6))
def test_eyes_and_triangles_are_numpys(rows: int, columns: int, k: int):
    x = np.arange(2 * rows * columns, dtype=np.float32).reshape(2, rows, columns)
    (eye,) = typed("EyeLike", x[0], k=k).run()
    np.testing.assert_array_equal(eye, np.eye(rows, columns, k))
    for upper, cut in ((1, np.triu), (0, np.tril)):
        (result,) = typed("Trilu", x, scalar(k), upper=upper).run()
        np.testing.assert_array_equal(result, cut(x, k))


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot_marks_what_is_in_range(axis: int):
    indices = np.array([0, 2, -1, 3, -4], np.int64)
    case = typed("OneHot", indices, scalar(3), np.array([5, 7], np.float32), axis=axis)
    marks = np.full((5, 3), 5, np.float32)
    marks[0, 0] = marks[1, 2] = marks[2, 2] = 7
    np.testing.assert_array_equal(case.run()[0], marks.T if axis == 0 else marks)


@given(
    hnp.arrays(
        np.int64,
        hnp.array_shapes(max_dims=3, min_side=0, max_side=4),
        elements={"min_value": -3, "max_value": 3},
    ),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_running_sums_may_exclude_themselves_and_go_backwards(x, exclusive, reverse, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    ordered = np.flip(x, axis) if reverse else x
    expected = np.cumsum(ordered, axis) - (ordered if exclusive else 0)
    expected = np.flip(expected, axis) if reverse else expected
    options = {"exclusive": int(exclusive), "reverse": int(reverse)}
    (result,) = typed("CumSum", x, scalar(axis), **options).run()
    np.testing.assert_array_equal(result, expected)


def test_shapes_and_sizes_are_known_without_elements():
    x = np.zeros((2, 3, 4), np.float32)
    assert typed("Shape", x).run()[0].tolist() == [2, 3, 4]
    assert typed("Shape", x, start=-2, end=3).run()[0].tolist() == [3, 4]
    assert typed("Size", x).run()[0].tolist() == 24


def test_constants_come_from_each_kind_of_attribute():
    shape = np.array([2], np.int64)
    assert typed("ConstantOfShape", shape).run()[0].tolist() == [0, 0]
    assert typed("ConstantOfShape", shape, value=np.array([7], np.int8)).run()[0].tolist() == [7, 7]
    assert typed("Constant", value_ints=[1, 2]).run()[0].tolist() == [1, 2]
    assert typed("Constant", value_float=1.5).run()[0].tolist() == 1.5
    assert typed("Constant", value=np.eye(2)).run()[0].tolist() == [[1, 0], [0, 1]]
