"""Places of an old plan's steps on the axis of a new one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.view.page_extras import placed_steps


@pytest.mark.parametrize(
    ("counts", "pairs", "places"),
    [
        ((3, 3), [(0, 0), (1, 1), (2, 2)], (0, 1, 2, 3)),
        ((4, 3), [(0, 0), (1, 1), (3, 2)], (0, 1, 3, 4)),  # a step more before the last one
        ((2, 4), [(0, 0), (1, 3)], (0, 1 / 3, 2 / 3, 1, 2)),  # two steps were fused
        ((4, 2), [], (0, 2, 4)),  # nothing matches
        ((0, 2), [], (0, 0, 0)),
        ((3, 0), [], (0,)),
    ],
)
def test_matched_steps_lie_over_one_another(counts, pairs, places) -> None:
    assert placed_steps(*counts, pairs) == pytest.approx(places)


@given(
    st.integers(0, 30),
    st.integers(0, 30),
    st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=40),
)
def test_places_never_fall_and_end_with_the_axis(new, old, pairs) -> None:
    pairs = [(n, o) for n, o in pairs if n < new and o < old]
    places = placed_steps(new, old, pairs)
    assert len(places) == old + 1
    assert list(places) == sorted(places)
    assert all(0 <= place <= new for place in places)
