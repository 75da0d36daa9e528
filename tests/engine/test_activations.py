"""The type of activations among the passes left out."""

import pytest

from tightship.engine.activations import (
    EXACT,
    FLOAT32_PRODUCTS,
    activations_of,
    passes_of,
    precision_of,
    usual_cache,
    with_activations,
    with_precision,
)
from tightship.errors import InputError


def test_a_type_is_one_more_pass_left_out() -> None:
    left_out = with_activations(("native", "in_place"), "int8")
    assert left_out == ("native", "in_place", EXACT)
    assert with_activations(left_out, "int8") == with_activations(left_out, None) == left_out
    assert activations_of(left_out) == "int8"
    assert usual_cache(left_out) is None  # without `native`, no kernel reads them
    assert usual_cache(["in_place", EXACT]) == "float16"
    assert passes_of(left_out) == ["in_place", "native"]


def test_float32_leaves_out_nothing_more() -> None:
    for given in (None, "float32"):
        assert with_activations(["native"], given) == ("native",)
    assert activations_of(("native",)) == "float32"
    assert usual_cache(("native",)) is None


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(InputError, match="must be `float32` or `int8`"):
        with_activations((), "bfloat16")
    with pytest.raises(InputError, match="leave one of these away"):
        with_activations((EXACT,), "float32")


def test_a_type_of_products_is_one_more_pass_left_out() -> None:
    left_out = with_precision(("native", EXACT), "bfloat16")
    assert left_out == ("native", EXACT, FLOAT32_PRODUCTS)
    assert with_precision(left_out, "bfloat16") == with_precision(left_out, None) == left_out
    assert (precision_of(left_out), precision_of(["native"])) == ("bfloat16", "float32")
    assert passes_of(left_out) == ["native"]
    assert with_precision(["native"], "float32") == ("native",)


def test_types_of_products_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(InputError, match="must be `float32` or `bfloat16`"):
        with_precision((), "float16")
    with pytest.raises(InputError, match="leave one of these away"):
        with_precision((FLOAT32_PRODUCTS,), "float32")
