"""The searches for buffers and for items share no step of reasoning: one judges the other."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planner.planted import planted
from tests.planner.problems import problem
from tightship.planner.bound import lower_bound
from tightship.planner.placements.exact import fit
from tightship.planner.placements.exact_items import ItemSearch, Within

EFFORT = 20_000_000

small_rows = st.integers(0, 7).flatmap(
    lambda start: st.tuples(
        st.integers(1, 4), st.just(start), st.integers(start + 1, start + 5),
        st.sampled_from([1, 1, 2]),
    )
)  # fmt: skip


def assert_agreed(made, capacity):
    one = fit(made, capacity, effort=EFFORT)
    other = ItemSearch(made).fit(Within(peak_bytes=capacity), effort=EFFORT)
    if "open" not in (one.verdict, other.verdict):  # as of many that are alike
        assert one.verdict == other.verdict


@settings(max_examples=120, deadline=None)
@given(st.lists(small_rows, min_size=4, max_size=9), st.integers(0, 2))
def test_they_agree_on_small_sizes_that_leave_single_bytes_between(rows, more):
    made = problem(*rows)
    assert_agreed(made, lower_bound(made) + more)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("less", [0, 1])
def test_they_agree_on_full_rectangles(seed, less):
    made = planted(seed, 9, 12, steps=12, shaved=seed % 2 / 5)
    assert_agreed(made, made.capacity_bytes - less)


def test_a_buffer_of_one_byte_carries_another():
    rows = ((2, 6, 9, 1), (1, 5, 8, 2), (4, 0, 1, 2), (1, 1, 3, 1), (3, 4, 8, 1), (2, 3, 5, 1))
    assert_agreed(problem(*rows), 6)
