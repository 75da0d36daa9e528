"""Order within ranks."""

from tightship.view.network.ordering import crossings, ordered
from tightship.view.network.ranks import Neighbours


def test_crossings_are_counted():
    neighbours = Neighbours.of(4, [(0, 3), (1, 2)])
    assert crossings([[0, 1], [2, 3]], neighbours) == 1
    assert crossings([[0, 1], [3, 2]], neighbours) == 0


def test_edges_that_meet_in_a_node_do_not_cross():
    assert crossings([[0, 1], [2]], Neighbours.of(3, [(0, 2), (1, 2)])) == 0


def test_branches_that_can_be_drawn_apart_are():
    edges = [(0, 1), (0, 2), (0, 3), (1, 6), (2, 5), (3, 4), (4, 7), (5, 7), (6, 7)]
    neighbours = Neighbours.of(8, edges)
    rows = ordered([0, 1, 1, 1, 2, 2, 2, 3], neighbours)
    assert crossings(rows, neighbours) == 0
    assert [sorted(row) for row in rows] == [[0], [1, 2, 3], [4, 5, 6], [7]]


def test_an_empty_graph_has_no_ranks():
    assert ordered([], Neighbours.of(0, [])) == []
