"""Operators that reduce or multiply, on arrays of any shape."""

import numpy as np
import pytest

from tests.engine.kernels.sized.checks import (
    FLOATS,
    assert_agrees_with_reference,
    assert_agrees_with_suite,
    of_module,
)

OTHER = {
    "no rows": ("ReduceMax", 13, {"axes": (0,), "keepdims": 0}, [FLOATS]),
    "no product": ("MatMul", 13, {}, [np.zeros((0, 4), np.float32), FLOATS.T]),
}  # fmt: skip


@pytest.mark.parametrize("operator", of_module("reduction"))
def test_kernels_agree_with_the_node_suite(operator: str) -> None:
    assert_agrees_with_suite(operator)


@pytest.mark.parametrize("what", sorted(OTHER))
def test_kernels_agree_with_the_reference(what: str) -> None:
    assert_agrees_with_reference(what, OTHER[what])
