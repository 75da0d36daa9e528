"""Operators that compute elements from shapes and scalars, on arrays of any shape."""

import numpy as np
import pytest

from tests.engine.kernels.sized.checks import (
    assert_agrees_with_reference,
    assert_agrees_with_suite,
    of_module,
)

OTHER = {
    "down": ("Range", 11, {}, [np.array(9), np.array(2), np.array(-3)]),
    "no numbers": ("Range", 11, {}, [np.array(2), np.array(2), np.array(1)]),
}  # fmt: skip


@pytest.mark.parametrize("operator", of_module("generate"))
def test_kernels_agree_with_the_node_suite(operator: str) -> None:
    assert_agrees_with_suite(operator)


@pytest.mark.parametrize("what", sorted(OTHER))
def test_kernels_agree_with_the_reference(what: str) -> None:
    assert_agrees_with_reference(what, OTHER[what])
