"""Reductions over rows that are not in use."""

import pytest

from tests.decoders import Writer
from tests.engine.state.one_operator import assert_refused, assert_same


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
def test_extremes_of_the_rows_in_use(operator: str) -> None:
    assert_same(lambda w, rows, _: w(operator, rows, axes=[2], keepdims=1))
    assert_same(lambda w, rows, _: w(operator, rows, axes=[-2, -1], keepdims=0))


def test_a_sum_of_the_rows_in_use() -> None:
    axes = 2
    assert_same(lambda w, rows, _: w("ReduceSum", rows, w.constant([axes])))
    assert_same(lambda w, rows, _: w("ReduceSum", w("Exp", rows), w.constant([axes]), keepdims=0))
    assert_same(lambda w, rows, _: w("ReduceSum", rows))


def test_a_softmax_over_the_rows_in_use() -> None:
    def mixed(w: Writer, rows: str, _: str) -> str:
        shares = w("Softmax", w("Transpose", rows, perm=[0, 1, 3, 2]), axis=-1)
        return w("MatMul", shares, rows)

    assert_same(mixed)


def test_a_sum_from_the_front() -> None:
    def last(w: Writer, rows: str, _: str) -> str:
        sums = w("CumSum", rows, w.constant(2))
        return w("Slice", sums, w.constant([-1]), w.constant([2**62]), w.constant([2]))

    assert_same(last)
    assert_refused(lambda w, rows, _: w("CumSum", rows, w.constant(2), reverse=1), "CumSum")


def test_normalized_rows() -> None:
    def mixed(w: Writer, rows: str, _: str) -> str:
        y = w("LayerNormalization", rows, w.constant([1.0, 2, 3, 4], "float32"))
        return w("ReduceMax", y, axes=[2])

    assert_same(mixed)


def test_a_mean_is_refused_by_its_name() -> None:
    assert_refused(lambda w, rows, _: w("ReduceMean", rows, axes=[2]), "ReduceMean")
