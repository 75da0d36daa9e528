"""The type of products among the passes left out."""

import pytest

from tightship.engine.activations import EXACT, passes_of
from tightship.engine.precision import FLOAT32_PRODUCTS, precision_of, with_precision
from tightship.errors import InputError


def test_a_type_is_one_more_pass_left_out() -> None:
    left_out = with_precision(("native", EXACT), "bfloat16")
    assert left_out == ("native", EXACT, FLOAT32_PRODUCTS)
    assert with_precision(left_out, "bfloat16") == with_precision(left_out, None) == left_out
    assert precision_of(left_out) == "bfloat16"
    assert passes_of(left_out) == ["native"]


def test_float32_leaves_out_nothing_more() -> None:
    for given in (None, "float32"):
        assert with_precision(["native"], given) == ("native",)
    assert precision_of(("native",)) == "float32"


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(InputError, match="must be `float32` or `bfloat16`"):
        with_precision((), "float16")
    with pytest.raises(InputError, match="leave one of these away"):
        with_precision((FLOAT32_PRODUCTS,), "float32")
