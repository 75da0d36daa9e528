"""Schedules in which steps run again in any order given."""

from tests.planner.chains import chain
from tightship.planner import Schedule, ScheduledValue, Step
from tightship.planner.replayed import replayed


def test_a_step_reads_what_was_written_last_and_what_none_reads_is_left_out():
    schedule, _ = chain(3)
    made, origin = replayed(schedule, [0, 1, 2, 3, 0, 1, 4, 0, 5], len(schedule.steps))
    # The second run of step 1 is the one that step 4 reads; what then reads step 0 is its last run.
    assert origin == (0, 1, 2, 3, 0, 1, 4, 0, 5)
    assert made.steps[6].reads == (made.steps[3].writes[0], made.steps[5].writes[0])
    assert [step.name for step in made.steps[4:8]] == ["v0.again", "v1.again", "b2", "v0.again2"]
    made, origin = replayed(schedule, [0, 1, 2, 3, 0, 1, 4, 1, 5], len(schedule.steps))
    assert origin == (0, 1, 2, 3, 0, 1, 4, 5)


def test_a_first_run_that_none_reads_is_left_out_and_the_second_keeps_the_name():
    schedule, _ = chain(2)
    made, origin = replayed(schedule, [0, 1, 1, 2, 3], len(schedule.steps))
    assert origin == (0, 1, 2, 3)
    assert made.values == schedule.values


def test_outputs_are_those_of_the_first_run():
    values = (*(ScheduledValue(name, 64) for name in "abc"),)
    steps = (Step("a", "A", (), (0,)), Step("b", "B", (0,), (1,)), Step("c", "C", (0, 1), (2,)))
    made, origin = replayed(Schedule(values, steps, (0, 2)), [0, 1, 0, 2], 2)
    assert origin == (0, 1, 2)
    assert made.outputs == (0, 2)
