"""Operators that compute element by element, on arrays of any shape."""

import numpy as np
import pytest

from tests.engine.kernels.sized.checks import (
    FLOATS,
    assert_agrees_with_reference,
    assert_agrees_with_suite,
    of_module,
)

OTHER = {
    "negative quotients": ("Div", 14, {}, [np.int8([-7, 7]), np.int8([2, -2])]),
    "unsigned quotients": ("Div", 14, {}, [np.uint8([7, 200]), np.uint8([2, 3])]),
    "one limit": ("Clip", 13, {}, [FLOATS, None, np.float32(2).reshape(())]),
}  # fmt: skip


@pytest.mark.parametrize("operator", of_module("elementwise"))
def test_kernels_agree_with_the_node_suite(operator: str) -> None:
    assert_agrees_with_suite(operator)


@pytest.mark.parametrize("what", sorted(OTHER))
def test_kernels_agree_with_the_reference(what: str) -> None:
    assert_agrees_with_reference(what, OTHER[what])
