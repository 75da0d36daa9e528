"""Operators that move elements, on arrays of any shape."""

import numpy as np
import pytest

from tests.engine.kernels.sized.checks import (
    FLOATS,
    assert_agrees_with_reference,
    assert_agrees_with_suite,
    ints,
    of_module,
)

OTHER = {
    "an axis before opset 13": ("Squeeze", 11, {"axes": (1,)}, [np.ones((2, 1, 3), np.float64)]),
    "axes in any order": ("Unsqueeze", 13, {}, [FLOATS, ints(-1, 0)]),
    "backwards": ("Slice", 13, {}, [FLOATS, ints(-1), ints(-100), ints(1), ints(-2)]),
    "past the end": ("Slice", 10, {}, [FLOATS, ints(1), ints(2**62)]),
    "attributes": ("Slice", 1, {"starts": (0,), "ends": (1,), "axes": (1,)}, [FLOATS]),
    "parts": ("Split", 13, {"axis": 1}, [FLOATS, ints(1, 3)]),
}  # fmt: skip


@pytest.mark.parametrize("operator", of_module("movement"))
def test_kernels_agree_with_the_node_suite(operator: str) -> None:
    assert_agrees_with_suite(operator)


@pytest.mark.parametrize("what", sorted(OTHER))
def test_kernels_agree_with_the_reference(what: str) -> None:
    assert_agrees_with_reference(what, OTHER[what])
