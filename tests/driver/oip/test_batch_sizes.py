"""Sizes that joined requests run with."""

import pytest

from tests.driver.oip.joining import value
from tightship.driver.oip import joining_gain
from tightship.driver.oip.batch_sizes import COUNTED_MAX, KEPT_AFTER, OFTEN, BatchSizes

KEY = (("x", (16,)),)


@pytest.mark.parametrize(
    ("rows", "size_max", "size"),
    [(2, 8, 2), (3, 8, 4), (5, 8, 8), (8, 8, 8), (5, 6, 6), (6, 6, 6), (9, 12, 12), (13, 100, 16)],
)
def test_a_size_is_the_next_power_of_two_up_to_the_largest(rows, size_max, size):
    assert BatchSizes(size_max).size_for(KEY, rows) == size


def test_a_size_that_comes_often_is_its_own():
    sizes = BatchSizes(16)
    assert [sizes.size_for(KEY, 5) for _ in range(OFTEN + 2)] == [8] * OFTEN + [5] * 2
    assert sizes.size_for(KEY, 6) == 8
    assert sizes.size_for((("x", (17,)),), 5) == 8


def test_sizes_of_many_shapes_are_forgotten():
    sizes = BatchSizes(16)
    for length in range(2 * COUNTED_MAX):
        sizes.size_for((("x", (length,)),), 5)
    assert len(sizes._seen) <= COUNTED_MAX


def test_callers_get_their_rows_of_runs_with_more_and_of_their_own_size(
    setting, sizes, monkeypatch
):
    monkeypatch.setattr(joining_gain, "WORTH_NS", 0)
    for turn in range(OFTEN + 1):
        setting.endpoint.permits.take_free()
        asked = [setting.ask([turn, n], n % 4) for n in (1, 2)] + [setting.ask(7)]
        setting.wait_for(3)
        setting.endpoint.permits.give_back()
        assert [value(each) for each in asked] == [[2 * turn, 2], [3 * turn, 6], [7]]
    assert sizes == [8] * OFTEN + [5]


def test_a_size_is_planned_once_its_program_is_kept():
    sizes = BatchSizes(16)
    assert not sizes.is_planned(KEY, 5)
    for _ in range(KEPT_AFTER):
        sizes.note_run(KEY, sizes.size_for(KEY, 5))
    assert sizes.is_planned(KEY, 5)
    assert sizes.is_planned(KEY, 8)
    assert not sizes.is_planned(KEY, 4)
    for _ in range(OFTEN - KEPT_AFTER):
        sizes.size_for(KEY, 5)
    assert not sizes.is_planned(KEY, 5)  # of its own size from now on
    for length in range(2 * COUNTED_MAX):
        sizes.note_run((("x", (length,)),), 5)
    assert len(sizes._ran) <= COUNTED_MAX
