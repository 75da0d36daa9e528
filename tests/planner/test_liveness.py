import pytest
from hypothesis import given, settings

from tests.planner.oracles import Replay
from tests.planner.problems import schedules
from tightship.planner.liveness import problem_of
from tightship.planner.placements.in_one_order import best_fit, greedy_by_size
from tightship.planner.schedule import Alias, AliasKind, Schedule, ScheduledValue, Step
from tightship.planner.schedule_plan import NO_BUFFER

X = ScheduledValue("x", 64, external=True)


def over(output, source):
    return Alias(output, source, AliasKind.IN_PLACE)


def view(output, source):
    return Alias(output, source, AliasKind.VIEW)


def taken(sizes, *steps, outputs=(), external=()):
    """The in-place aliases taken among values of these sizes, written after external `x`."""
    values = tuple(
        ScheduledValue(f"v{index}", size, external=index in external)
        for index, size in enumerate(sizes, 1)
    )
    return problem_of(Schedule((X, *values), steps, outputs)).in_place


MAKE = Step("make", "Op", (0,), (1,))


@settings(max_examples=400)
@given(schedules())
@pytest.mark.parametrize("in_place", [True, False])
def test_every_value_is_whole_when_it_is_read(in_place, schedule):
    buffers = problem_of(schedule, in_place=in_place)
    for place in (best_fit, greedy_by_size):
        Replay(schedule, buffers, place(buffers.problem)).run()


@given(schedules())
def test_in_place_never_raises_the_largest_load_or_the_sum(schedule):
    merged = problem_of(schedule, in_place=True).problem
    apart = problem_of(schedule, in_place=False).problem
    steps = len(schedule.steps)
    assert merged.live_bytes(steps).max() <= apart.live_bytes(steps).max()
    assert merged.total_bytes <= apart.total_bytes


@given(schedules())
def test_only_internal_values_and_scratch_have_buffers(schedule):
    buffers = problem_of(schedule)
    written = {value for step in schedule.steps for value in step.writes}
    for value, scheduled in enumerate(schedule.values):
        if scheduled.external or value not in written:
            assert buffers.of_value[value] == NO_BUFFER
    for step, buffer in zip(schedule.steps, buffers.of_scratch, strict=True):
        assert (buffer != NO_BUFFER) == (step.scratch_bytes > 0)
    used = {*buffers.of_value, *buffers.of_scratch} - {NO_BUFFER}
    assert used == set(range(buffers.problem.count))


def test_scratch_lives_in_its_step_only():
    schedule = Schedule(
        (X, ScheduledValue("a", 8)), (MAKE, Step("read", "Op", (1,), (), 100)), (1,)
    )
    buffers = problem_of(schedule)
    index = buffers.of_scratch[1]
    assert buffers.of_scratch[0] == NO_BUFFER
    assert buffers.problem.label(index) == "1 `read.scratch`"
    assert [int(column[index]) for column in buffers.problem.columns()] == [100, 1, 2, 64]


def test_an_activation_chain_is_one_buffer():
    steps = [Step(f"s{i}", "Op", (i,), (i + 1,), 0, (over(i + 1, i),)) for i in range(1, 4)]
    values = (X, *(ScheduledValue(f"v{i}", 64) for i in range(1, 5)))
    buffers = problem_of(Schedule(values, (MAKE, *steps)))
    assert buffers.of_value == (NO_BUFFER, 0, 0, 0, 0)
    assert buffers.problem.count == 1
    assert len(buffers.in_place) == 3


def test_the_trap_a_value_read_later_is_not_written_over():
    sigmoid = Step("sigmoid", "Op", (1,), (2,), 0, (over(2, 1),))
    assert taken([8, 8, 8], MAKE, sigmoid, Step("late", "Op", (2,), (3,))) == (over(2, 1),)
    assert taken([8, 8, 8], MAKE, sigmoid, Step("late", "Op", (1, 2), (3,))) == ()
    assert taken([8, 8], MAKE, sigmoid, outputs=(1,)) == ()
    assert taken([8, 8], MAKE, sigmoid, outputs=(2,)) == (over(2, 1),)


def test_the_trap_a_view_read_later_is_not_written_over():
    show = Step("show", "Op", (1,), (2,), 0, (view(2, 1),))
    relu = Step("relu", "Op", (1,), (3,), 0, (over(3, 1),))
    assert taken([8, 8, 8, 8], MAKE, show, relu, Step("late", "Op", (3,), (4,))) == (over(3, 1),)
    assert taken([8, 8, 8, 8], MAKE, show, relu, Step("late", "Op", (2, 3), (4,))) == ()
    assert taken([8, 8, 8], MAKE, show, relu, outputs=(2,)) == ()


def test_the_trap_a_view_in_another_operand_is_not_written_over():
    show = Step("show", "Op", (1,), (2,), 0, (view(2, 1),))
    product = Step("product", "Op", (1, 2), (3,), 0, (over(3, 1),))
    assert taken([8, 8, 8], MAKE, show, product) == ()


def test_one_input_is_taken_by_one_output():
    split = Step("split", "Op", (1,), (2, 3), 0, (over(2, 1), over(3, 1)))
    assert taken([8, 8, 8], MAKE, split) == (over(2, 1),)
    shown = Step("split", "Op", (1,), (2, 3), 0, (view(2, 1), over(3, 1)))
    assert taken([8, 8, 8], MAKE, shown) == ()


def test_an_output_takes_the_input_of_its_size():
    make = Step("make", "Op", (0,), (1, 2))
    add = Step("add", "Op", (1, 2), (3,), 0, (over(3, 1), over(3, 2)))
    assert taken([64, 8, 8], make, add) == (over(3, 2),)


def test_external_values_are_not_written_over():
    relu = Step("relu", "Op", (0,), (1,), 0, (over(1, 0),))
    assert taken([64], relu) == ()
    shown = Step("show", "Op", (0,), (1,), 0, (view(1, 0),))
    assert taken([64, 64], shown, Step("relu", "Op", (1,), (2,), 0, (over(2, 1),))) == ()
    last = Step("relu", "Op", (1,), (2,), 0, (over(2, 1),))
    assert taken([8, 8], MAKE, last, external=(2,)) == ()


def test_a_small_output_does_not_keep_a_large_buffer_through_the_peak():
    shrink = Step("shrink", "Op", (1,), (2,), 0, (over(2, 1),))
    peak = Step("peak", "Op", (2,), (3,))
    assert taken([64, 8, 64], MAKE, shrink, peak) == ()
    assert taken([64, 8, 8], MAKE, shrink, peak) == (over(2, 1),)


def test_a_buffer_grows_where_that_costs_nothing():
    grow = Step("grow", "Op", (2,), (3,), 0, (over(3, 2),))
    beside = Step("beside", "Op", (1,), (2,))
    assert taken([64, 8, 16], MAKE, beside, grow) == ()
    assert taken([8, 8, 16], MAKE, beside, grow) == (over(3, 2),)


def test_what_one_alias_keeps_alive_counts_for_the_next():
    # Two buffers of 64 bytes would carry 8 each through the last step, which allows one.
    steps = (
        MAKE,
        Step("make", "Op", (0,), (2,)),
        Step("shrink", "Op", (1,), (3,), 0, (over(3, 1),)),
        Step("shrink", "Op", (2,), (4,), 0, (over(4, 2),)),
        Step("join", "Op", (3, 4), (5,)),
    )
    assert taken([64, 64, 8, 8, 16], *steps) == (over(3, 1),)
    assert taken([64, 64, 8, 8, 8], *steps) == (over(3, 1), over(4, 2))


def test_what_one_alias_saves_is_not_spent_on_the_next():
    # The first alias brings the largest load from 136 to 72; the second would bring it to 80.
    steps = (
        MAKE,
        Step("make", "Op", (0,), (2,)),
        Step("relu", "Op", (2,), (3,), 0, (over(3, 2),)),
        Step("grow", "Op", (1,), (4,), 0, (over(4, 1),)),
    )
    assert taken([8, 64, 64, 16], *steps) == (over(3, 2),)
    assert taken([8, 64, 64, 8], *steps) == (over(3, 2), over(4, 1))
