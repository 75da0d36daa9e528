"""Positions within ranks."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tightship.view.network.coordinates import positions, rising
from tightship.view.network.ranks import Neighbours


def test_what_falls_is_pooled():
    assert rising([1, 3, 2, 5], [1, 1, 1, 1]) == [1, 2.5, 2.5, 5]
    assert rising([4, 0], [3, 1]) == [3, 3]


@given(st.lists(st.floats(-100, 100), max_size=20))
def test_the_result_never_falls_and_keeps_the_sum(values):
    found = rising(values, [1.0] * len(values))
    assert all(a <= b + 1e-6 for a, b in pairwise(found))
    assert abs(sum(found) - sum(values)) < 1e-6


def test_a_chain_is_straight_and_boxes_of_a_rank_do_not_touch():
    edges = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4), (4, 5)]
    rows = [[0], [1, 2, 3], [4], [5]]
    widths = [80.0, 120.0, 60.0, 90.0, 80.0, 80.0]
    found = positions(rows, Neighbours.of(6, edges), widths, [1.0] * 6)
    for left, right in ((1, 2), (2, 3)):
        assert found[right] - found[left] >= (widths[left] + widths[right]) / 2 + 20
    assert abs(found[4] - found[5]) < 1
    assert min(m - w / 2 for m, w in zip(found, widths, strict=True)) == 0
