"""Ranks of nodes."""

from hypothesis import given
from hypothesis import strategies as st

from tightship.view.network.ranks import Neighbours, in_order, mirrored_ranks, ranks_of

GRAPHS = st.integers(1, 24).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(
            st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(
                lambda edge: edge[0] < edge[1]
            ),
            max_size=60,
        ),
    )
)


def test_a_source_stands_above_its_first_reader():
    neighbours = Neighbours.of(5, [(0, 1), (1, 2), (2, 3), (4, 3)])
    assert ranks_of(neighbours) == [0, 1, 2, 3, 2]


def test_nodes_of_a_cycle_are_left_out_of_the_order():
    assert in_order(Neighbours.of(4, [(0, 1), (1, 2), (2, 1), (2, 3)])) == [0]


@given(GRAPHS)
def test_an_edge_goes_to_a_later_rank(graph):
    count, edges = graph
    ranks = ranks_of(Neighbours.of(count, edges))
    assert all(ranks[a] < ranks[b] for a, b in edges)


def test_the_backward_pass_climbs_beside_what_it_reads():
    forward = [(0, 1), (1, 2), (2, 3)]
    backward = [(3, 4), (4, 5), (1, 5), (5, 6), (0, 6)]
    flags = [False] * 4 + [True] * 3
    ranks = mirrored_ranks(Neighbours.of(7, [*forward, *backward]), flags)
    assert ranks == [0, 1, 2, 3, 3, 1, 0]


@given(GRAPHS, st.integers(0, 24))
def test_backward_edges_climb_and_forward_ones_fall(graph, first):
    count, edges = graph
    flags = [node >= first for node in range(count)]
    edges = [(a, b) for a, b in edges if not (flags[a] and not flags[b])]
    ranks = mirrored_ranks(Neighbours.of(count, edges), flags)
    assert min(ranks) == 0
    for a, b in edges:
        if flags[a]:
            assert ranks[a] > ranks[b]
        elif not flags[b]:
            assert ranks[a] < ranks[b]
