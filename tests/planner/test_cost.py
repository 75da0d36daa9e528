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
def test_columns_keep_their_order_where_nothing_is_padded(schedule):
    schedule = padded(schedule)
    columns = cost(schedule).columns
    assert columns.lower_bound_in_place_bytes <= columns.lower_bound_bytes
    assert columns.lower_bound_in_place_bytes <= columns.arena_bytes <= columns.both_bytes
    assert columns.arena_bytes <= columns.shared_bytes <= columns.naive_bytes
    assert columns.in_place_bytes <= columns.naive_bytes
    assert columns.naive_bytes == problem_of(schedule, in_place=False).problem.total_bytes


def test_colours_are_left_out_where_they_would_take_too_long():
    assert "in-place and colours" not in cost(different_many(COLOURED_MAX + 1)).schemes


def padded(schedule):
    """The schedule with every size a multiple of every alignment."""
    values = tuple(replace(v, size_bytes=64 * v.size_bytes, alignment=64) for v in schedule.values)
    steps = tuple(
        replace(
            step,
            scratch_bytes=64 * step.scratch_bytes,
            aliases=tuple(replace(a, offset_bytes=64 * a.offset_bytes) for a in step.aliases),
        )
        for step in schedule.steps
    )
    return replace(schedule, values=values, steps=steps)


def different_many(count):
    """A chain without any alias."""
    chain = sigmoids(count)
    return replace(chain, steps=tuple(replace(step, aliases=()) for step in chain.steps))
