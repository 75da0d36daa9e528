from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.kernels.typed import typed


def ints(*elements: int) -> Any:
    return np.array(elements, np.int64)


@given(
    hnp.array_shapes(min_dims=1, max_dims=3, max_side=4),
    st.sampled_from(["constant", "edge", "reflect", "wrap"]),
    st.data(),
)
def test_it_pads_as_numpy_does_any_number_of_times(shape, mode, data):
    x = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    count = st.lists(st.integers(0, 9), min_size=len(shape), max_size=len(shape))
    before, after = data.draw(count), data.draw(count)
    expected = np.pad(x, list(zip(before, after, strict=True)), mode=mode)
    case = typed("Pad", x, ints(*before, *after), mode=mode, like=[expected])
    np.testing.assert_array_equal(case.run()[0], expected)


@given(st.integers(-2, 3), st.integers(-2, 3), st.sampled_from(["constant", "edge"]))
def test_negative_pads_take_elements_away(before, after, mode):
    x = np.arange(6, dtype=np.float32)
    cut = x[max(-before, 0) : 6 + min(after, 0)]
    grown = (max(before, 0), max(after, 0))
    expected = np.pad(
        cut, grown, mode=mode, **({"constant_values": 9} if mode == "constant" else {})
    )
    fill = np.float32(9).reshape(())
    case = typed("Pad", x, ints(before, after), fill, mode=mode, like=[expected])
    if mode == "constant" or (before >= 0 and after >= 0):
        np.testing.assert_array_equal(case.run()[0], expected)


def test_axes_choose_what_is_padded():
    x = np.ones((2, 3), np.float32)
    (result,) = typed("Pad", x, ints(1, 2), None, ints(-1)).run()
    np.testing.assert_array_equal(result, np.pad(x, [(0, 0), (1, 2)]))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_before_opset_11_pads_are_attributes(mode: str):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    case = typed("Pad", x, version=10, pads=[1, 0, 0, 2], mode=mode)
    np.testing.assert_array_equal(case.run()[0], np.pad(x, [(1, 0), (0, 2)], mode=mode))


def test_an_empty_tensor_is_padded_with_the_value():
    case = typed("Pad", np.zeros((0,), np.float32), ints(2, 1), np.float32(7).reshape(()))
    assert case.run()[0].tolist() == [7, 7, 7]
