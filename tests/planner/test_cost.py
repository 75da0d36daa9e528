from dataclasses import replace

from hypothesis import given

from tests.planner.problems import schedules
from tests.planner.scheme.graphs import different_shapes, sigmoids
from tightship.planner.cost import COLOURED_MAX, cost
from tightship.planner.liveness import problem_of


def test_a_chain_of_sigmoids_by_hand():
    made = cost(sigmoids(4, 640))
    columns = made.columns
    assert columns.naive_bytes == 5 * 640
    assert columns.in_place_bytes == columns.both_bytes == columns.arena_bytes == 640
    assert columns.shared_bytes == columns.lower_bound_bytes == 2 * 640
    assert columns.lower_bound_in_place_bytes == 640
    assert {lever.name: (lever.alone_bytes, lever.without_bytes) for lever in made.levers} == {
        "in-place": (640, 1280),
        "sharing, equal sizes": (1280, 640),
        "sharing, other sizes": (1280, 640),
        "offsets in an arena": (1280, 640),
    }
    assert made.schemes == {"both, best match range": 640, "in-place and colours": 640}
    assert made.held.reserved_bytes >= made.imperative.reserved_bytes


def test_sharing_between_shapes_is_a_lever_of_its_own():
    levers = {lever.name: lever.alone_bytes for lever in cost(different_shapes(640, 320)).levers}
    assert levers["sharing, other sizes"] == levers["sharing, equal sizes"] - 320


@given(schedules())
def test_columns_keep_their_order_whatever_the_sizes_and_alignments(schedule):
    columns = cost(schedule).columns
    assert columns.lower_bound_in_place_bytes <= columns.lower_bound_bytes
    assert columns.lower_bound_in_place_bytes <= columns.arena_bytes <= columns.both_bytes
    assert columns.arena_bytes <= columns.shared_bytes <= columns.naive_bytes
    assert columns.in_place_bytes <= columns.naive_bytes
    apart = problem_of(schedule, in_place=False).problem
    padding = -apart.size_bytes % apart.alignment
    assert columns.naive_bytes == apart.total_bytes + int(padding.sum())


def test_blocks_and_arena_have_one_alignment():
    # Values of 100 bytes take 128 in each column but the arena, whose topmost value ends at 100.
    made = cost(sigmoids(4, 100))
    assert made.columns.naive_bytes == 5 * 128
    assert made.columns.in_place_bytes == made.columns.both_bytes == 128
    assert made.columns.shared_bytes == 2 * 128
    assert made.columns.arena_bytes == 100
    assert made.schemes == {"both, best match range": 128, "in-place and colours": 128}
    assert all(lever.alone_bytes <= made.columns.naive_bytes for lever in made.levers)


def test_colours_are_left_out_where_they_would_take_too_long():
    assert "in-place and colours" not in cost(different_many(COLOURED_MAX + 1)).schemes


def different_many(count):
    """A chain without any alias."""
    chain = sigmoids(count)
    return replace(chain, steps=tuple(replace(step, aliases=()) for step in chain.steps))
