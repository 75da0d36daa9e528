"""Rows of the past that are moved, joined and gathered."""

import numpy as np

from tests.decoders import Writer
from tests.engine.state.one_operator import assert_refused, assert_same


def summed(w: Writer, x: str, axis: int) -> str:
    """A sum over an axis, which shows where the rows in use are."""
    return w("ReduceSum", x, w.constant([axis]))


def test_transposed_and_reshaped_rows() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        x = w("Reshape", w("Transpose", rows, perm=[2, 0, 1, 3]), w.constant([0, 1, 8]))
        return summed(w, w("Squeeze", w("Unsqueeze", x, w.constant([0])), w.constant([2])), 1)

    assert_same(build)


def test_rows_joined_with_other_axes_are_refused() -> None:
    assert_refused(lambda w, rows, _: w("Reshape", rows, w.constant([-1, 4])), "Reshape")
    assert_refused(lambda w, rows, _: w("Flatten", rows, axis=2), "Flatten")


def test_rows_with_another_name() -> None:
    assert_same(lambda w, rows, _: summed(w, w("Identity", rows), 2))


def test_rows_joined_with_nothing() -> None:
    """Exports of transformers 5 append the past to an empty cache, or to none."""
    empty = np.zeros((1, 2, 0, 4))
    assert_same(lambda w, rows, _: summed(w, w("Concat", rows, axis=2), 2))
    assert_same(
        lambda w, rows, _: summed(w, w("Concat", w.constant(empty, "float32"), rows, axis=2), 2)
    )


def test_heads_joined_with_the_batch() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        length = w("Gather", w("Shape", rows), w.constant([2]))
        return summed(w, w("Reshape", rows, w("Concat", w.constant([-1]), length,
                                              w.constant([4]), axis=0)), 1)  # fmt: skip

    assert_same(build)


def pairs_of(w: Writer, rows: str, first: str) -> str:
    """Indices `[rows, 2]`: an index and the number of each row."""
    count = w("Gather", w("Shape", rows), w.constant(2))
    numbers = w("Unsqueeze", w("Range", w.constant(0), count, w.constant(1)), w.constant([1]))
    column = w("Expand", w.constant([[int(first)]]), w("Shape", numbers))
    return w("Concat", column, numbers, axis=-1)


def test_rows_gathered_by_pairs() -> None:
    """The mask of transformers 5: columns by batch and number."""

    def build(w: Writer, rows: str, _: str) -> str:
        flat = w("Squeeze", w("ReduceSum", rows, w.constant([1, 3]), keepdims=0),
                 w.constant([0]))  # fmt: skip
        table = w("Unsqueeze", flat, w.constant([0]))
        return summed(w, w("GatherND", table, pairs_of(w, rows, "0")), 0)

    assert_same(build)


def test_rows_gathered_from_the_end_are_refused() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        return summed(w, w("GatherND", rows, w.constant([[0, 1, -1]])), 0)

    assert_refused(build, "may be negative")


def test_expanded_rows() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        wide = w("Expand", w("Unsqueeze", rows, w.constant([2])), w.constant([1, 1, 3, 1, 1]))
        return summed(w, wide, 3)

    assert_same(build)


def test_rows_joined_along_other_axes_and_cut_apart() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        both = w("Concat", rows, w("Neg", rows), axis=3)
        first, _ = w.many("Split", 2, both, w.constant([3, 5]), axis=3)
        return summed(w, w("Tile", first, w.constant([1, 1, 1, 2])), 2)

    assert_same(build)
    assert_refused(lambda w, rows, _: w("Split", rows, axis=2), "depends on the past|Split")


def test_rows_whose_axis_is_the_first() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        flat = w("Transpose", rows, perm=[2, 0, 1, 3])
        return summed(w, w("Concat", flat, flat, axis=3), 0)

    assert_same(build)


def test_the_past_behind_other_rows_is_refused() -> None:
    table = np.ones((1, 2, 1, 4))
    assert_refused(
        lambda w, rows, _: w("Concat", w.constant(table, "float32"), rows, axis=2), "Concat"
    )


def test_a_table_that_is_gathered_from_by_position_has_the_rows_of_the_context() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        past = w("Gather", w("Shape", rows), w.constant(2), axis=0)
        return w("Gather", w.weight(11, 3), w("Sub", past, w.constant(1)))

    assert_refused(build, "11 rows, fewer than the context of 12")


def test_gathered_rows() -> None:
    assert_same(lambda w, rows, _: w("Gather", rows, w.constant([0, 0]), axis=2))
    assert_same(lambda w, rows, _: w("Gather", rows, w.constant(-1), axis=2))
    assert_refused(lambda w, rows, _: w("Gather", rows, w.constant([0, -1]), axis=2), "both ends")
    assert_refused(lambda w, rows, ids: w("Gather", rows, ids, axis=2), "may be negative")


def test_padded_rows() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        return summed(w, w("Pad", rows, w.constant([0, 0, 0, 1, 0, 0, 0, 0])), 2)

    assert_same(build)
    assert_refused(
        lambda w, rows, _: w("Pad", rows, w.constant([0, 0, 1, 0, 0, 0, 0, 0])), "to pad|rows"
    )
