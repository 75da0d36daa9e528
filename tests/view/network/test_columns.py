"""Columns of tall layouts."""

from tightship.view.network.columns import ASPECT, cuts_of


def test_a_short_graph_is_one_column():
    assert cuts_of([0, 60, 120], 160, 400, [0, 1, 1]) == [0]
    assert cuts_of([], 0, 0, []) == [0]


def test_a_tall_graph_has_about_the_aspect_of_a_window():
    count = 100
    cuts = cuts_of([60.0 * rank for rank in range(count)], 6000, 150, [1] * count)
    columns = len(cuts)
    assert cuts[0] == 0
    assert ASPECT / 2 < columns * 150 / (6000 / columns) < ASPECT * 2


def test_a_cut_moves_to_where_few_edges_cross():
    crossing = [0, *[3] * 20]
    crossing[9] = 1
    assert cuts_of([60.0 * rank for rank in range(21)], 1260, 500, crossing) == [0, 9]
