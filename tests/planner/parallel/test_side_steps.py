"""Steps that no other step waits for."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.planner.parallel.interleavings import Replay
from tests.planner.problems import schedules
from tightship.planner import Alias, AliasKind, Schedule, ScheduledValue, Step, place_schedule
from tightship.planner.parallel.parallel_plan import plan_parallel
from tightship.planner.parallel.side_steps import with_side_steps_joined


def layers(count: int) -> Schedule:
    """A forward pass, and a backward pass with a gradient of weights beside each layer's."""
    values = [ScheduledValue("x", 64, external=True)]
    steps = []

    def step(name, reads, **fields):
        values.append(ScheduledValue(name, 64, external=name.startswith("dw")))
        steps.append(Step(name, "Op", tuple(reads), (len(values) - 1,), **fields))
        return len(values) - 1

    acts = [0]
    for layer in range(count):
        acts.append(step(f"a{layer}", [acts[-1]]))
    gradient = step("loss", [acts[-1]])
    for layer in reversed(range(count)):
        step(f"dw{layer}", [acts[layer], gradient])
        gradient = step(f"d{layer}", [gradient])
    return Schedule(tuple(values), tuple(steps), (gradient,))


def test_gradients_of_weights_are_joined_to_those_of_data():
    joined = with_side_steps_joined(layers(3))
    assert [step.name for step in joined.steps] == ["a0", "a1", "a2", "loss", "d2", "d1", "d0"]
    names = [joined.values[value].name for value in joined.steps[4].writes]
    assert names == ["dw2", "d2"]


def test_their_bytes_come_back():
    serial = place_schedule(layers(8)).plan.peak_bytes
    assert plan_parallel(layers(8)).plan.peak_bytes > 1.5 * serial
    assert plan_parallel(with_side_steps_joined(layers(8))).plan.peak_bytes == serial


@given(schedule=schedules(), seed=st.integers(0, 999))
def test_what_is_joined_can_be_planned_and_run(schedule, seed):
    joined = with_side_steps_joined(schedule)
    assert sorted(value for step in joined.steps for value in step.writes) == sorted(
        value for step in schedule.steps for value in step.writes
    )
    Replay(plan_parallel(joined)).run(Random(seed))


def test_an_unread_view_stays_alone():
    values = tuple(ScheduledValue(name, 8) for name in "abcd")
    view = Step("c", "View", (1,), (2,), aliases=(Alias(2, 1, AliasKind.VIEW),))
    steps = (
        Step("a", "Op", (), (0,)),
        Step("b", "Op", (0,), (1,)),
        view,
        Step("d", "Op", (1,), (3,)),
    )
    schedule = Schedule(values, steps, (3,))
    assert with_side_steps_joined(schedule) == schedule


def test_none_is_joined_to_a_step_that_writes_over_what_it_reads_by_another_name():
    values = tuple(ScheduledValue(name, 8) for name in "abcd")
    steps = (
        Step("a", "Op", (), (0,)),
        Step("b", "View", (0,), (1,), aliases=(Alias(1, 0, AliasKind.VIEW),)),
        Step("c", "Op", (0, 1), (2,)),
        Step("d", "Op", (0,), (3,), aliases=(Alias(3, 0, AliasKind.TIED),)),
    )
    schedule = Schedule(values, steps, (3,))
    assert with_side_steps_joined(schedule) == schedule
    Replay(plan_parallel(schedule)).run(Random(0))
