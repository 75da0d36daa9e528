"""Elementwise operators, and operators without a rule."""

import pytest

from tests.decoders import Writer
from tests.engine.state.one_operator import assert_refused, assert_same


@pytest.mark.parametrize("operator", ["Neg", "Exp", "Tanh", "Sigmoid", "Reciprocal"])
def test_a_sum_of_elements_behind_an_operator(operator: str) -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        return w("ReduceSum", w(operator, w("Abs", rows)), w.constant([2]))

    assert_same(build)


def test_products_keep_zeros_and_sums_do_not() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        x = w("Add", w("Mul", rows, w.number(3)), w.number(1))
        return w("MatMul", w("Transpose", x, perm=[0, 1, 3, 2]), x)

    assert_same(build)


def test_an_operator_without_a_rule_is_refused_by_its_name() -> None:
    assert_refused(lambda w, rows, _: w("NonZero", rows), "NonZero|depends on")
    assert_refused(lambda w, rows, _: w("ArgMax", rows, axis=2), "ArgMax")
