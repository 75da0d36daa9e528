import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.problems import of_one_size, schedules
from tests.planner.scheme.graphs import different_shapes, replay, sigmoids
from tightship.planner.liveness import problem_of
from tightship.planner.scheme.colour import ORDERS, colour, conflicts


@pytest.mark.parametrize("order", ORDERS)
def test_a_chain_of_sigmoids_has_one_colour_in_place_and_two_without(order):
    assert colour(sigmoids(9), order=order).size_bytes == (640,)
    assert colour(sigmoids(9), order=order, in_place=False).size_bytes == (640, 640)


def test_b_and_e_of_different_shapes_have_one_colour_as_large_as_the_larger():
    blocks = colour(different_shapes(640, 320), in_place=False)
    assert blocks.of_value[2] == blocks.of_value[4]
    assert blocks.size_bytes[blocks.of_value[2]] == 640


@given(schedules(), st.sampled_from(sorted(ORDERS)), st.booleans())
def test_every_value_is_whole_when_it_is_read(schedule, order, in_place):
    replay(schedule, colour(schedule, order=order, in_place=in_place))


@given(schedules())
def test_in_order_of_time_colours_are_as_few_as_values_of_one_step(schedule):
    schedule = of_one_size(schedule, 8)
    problem = problem_of(schedule).problem
    live = [
        sum(start <= step < stop for start, stop in problem.columns()[1:3].T.tolist())
        for step in range(len(schedule.steps))
    ]
    assert len(colour(schedule, order="start").size_bytes) == max(live, default=0)


@given(schedules())
def test_buffers_conflict_when_they_are_live_in_one_step(schedule):
    problem = problem_of(schedule).problem
    spans = [set(range(*each)) for each in problem.columns()[1:3].T.tolist()]
    for buffer, span in enumerate(spans):
        expected = [i for i, other in enumerate(spans) if i != buffer and span & other]
        assert conflicts(problem, buffer).tolist() == expected
