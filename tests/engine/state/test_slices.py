"""Parts of the past, and of tables."""

import pytest

from tests.decoders import Writer
from tests.engine.state.one_operator import CONTEXT, assert_refused, assert_same


def part(start: int, end: int):
    return lambda w, rows, _: w(
        "Slice", rows, w.constant([start]), w.constant([end]), w.constant([2])
    )


def test_the_last_rows() -> None:
    assert_same(part(-1, 2**62))


def test_all_rows_and_a_part_of_another_axis() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        x = w("Slice", rows, w.constant([0, 1]), w.constant([2**62, 3]), w.constant([2, 3]))
        return w("ReduceSum", x, w.constant([2]))

    assert_same(build)


@pytest.mark.parametrize("bounds", [(1, 2**62), (0, 2), (-3, -2)])
def test_a_part_that_changes_with_the_length_is_refused(bounds: tuple[int, int]) -> None:
    assert_refused(part(*bounds), "Slice|decides")


def test_rows_of_a_table_up_to_the_last() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        total = w("Shape", rows, start=2, end=3)
        table = w("Slice", w.weight(CONTEXT, 4), w.constant([0]), total, w.constant([0]))
        return w("ReduceSum", w("Mul", rows, table), w.constant([2]))

    assert_same(build)


def test_a_table_that_is_too_short_is_refused() -> None:
    def build(w: Writer, rows: str, _: str) -> str:
        total = w("Shape", rows, start=2, end=3)
        return w("Slice", w.weight(CONTEXT - 1, 4), w.constant([0]), total, w.constant([0]))

    assert_refused(build, f"{CONTEXT - 1}")
