"""Products over the past."""

from tests.decoders import Writer
from tests.engine.state.one_operator import assert_refused, assert_same


def turned(w: Writer, rows: str) -> str:
    return w("Transpose", rows, perm=[0, 1, 3, 2])


def test_a_product_over_the_rows() -> None:
    assert_same(lambda w, rows, _: w("MatMul", turned(w, rows), rows))


def test_a_product_of_rows_that_are_not_zero_where_they_are_not_in_use() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        return w("MatMul", turned(w, w("Cos", rows)), w("Exp", rows))

    assert_same(build)


def test_a_product_of_rows_that_are_infinite_where_they_are_not_in_use() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        return w("MatMul", turned(w, rows), w("Reciprocal", w("Abs", rows)))

    assert_same(build)


def test_a_sum_written_in_letters() -> None:
    assert_same(lambda w, rows, _: w("Einsum", rows, w("Cos", rows), equation="bhtd,bhte->bhde"))
    assert_same(lambda w, rows, _: w("Einsum", rows, w("Exp", rows), equation="bhtd,bhtd->bhd"))


def test_attention_to_joined_rows() -> None:
    def build(w: Writer, rows: str, ids: str) -> str:
        query = w.heads(w("Gather", w.weight(50, 8), ids), 2)
        return w("Attention", query, rows, w("Neg", rows))

    assert_same(build, 23)


def test_causal_attention_that_does_not_count_from_the_past_is_refused() -> None:
    def build(w: Writer, rows: str, ids: str) -> str:
        query = w.heads(w("Gather", w.weight(50, 8), ids), 2)
        return w("Attention", query, rows, rows, is_causal=1)

    assert_refused(build, "causal", 23)
