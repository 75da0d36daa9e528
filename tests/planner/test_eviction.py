"""Eviction within a budget: runs that fit, compute the same, and keep to what must run once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.chains import chain
from tests.planner.problems import schedules
from tests.planner.test_squeeze import executed
from tightship.errors import PlanError
from tightship.planner import AliasKind, Schedule, ScheduledValue, Step
from tightship.planner.eviction import WEIGHINGS, Eviction
from tightship.planner.recompute import NEVER
from tightship.planner.replayed import replayed
from tightship.planner.run_bytes import RunBytes


def residual(length):
    """Sums around dear layers; the way back reads each sum and each layer's result."""
    values, steps, costs = [ScheduledValue("x", 64, external=True)], [], []

    def step(cost, *reads):
        values.append(ScheduledValue(f"v{len(values)}", 64))
        steps.append(Step(f"s{len(values)}", "F", reads, (len(values) - 1,)))
        costs.append(cost)
        return len(values) - 1

    x = step(1, 0)
    layers = []
    for _ in range(length):
        y = step(1000, x)
        layers.append((x, y))
        x = step(1, x, y)
    for before, y in reversed(layers):
        x = step(2000, x, before, y)
    return Schedule(tuple(values), tuple(steps), (x,)), costs


@pytest.mark.parametrize("weighing", WEIGHINGS)
@pytest.mark.parametrize("share", [0.9, 0.7, 0.5, 0.3])
def test_runs_fit_the_budget_and_compute_the_same(weighing, share):
    schedule, costs = residual(16)
    bytes_ = RunBytes(schedule)
    budget = int(bytes_.lives(range(len(costs))).load.max() * share)
    runs = Eviction(bytes_, costs).runs(budget, weighing)
    assert runs is not None
    assert bytes_.lives(runs).load.max() <= budget
    made, origin = replayed(schedule, runs, len(costs))
    own = executed(schedule, range(len(costs)), schedule)
    assert executed(made, origin, schedule) == own


def test_cheap_sums_go_and_dear_layers_stay():
    schedule, costs = residual(16)
    bytes_ = RunBytes(schedule)
    budget = int(bytes_.lives(range(len(costs))).load.max() * 0.65)
    runs = Eviction(bytes_, costs).runs(budget, WEIGHINGS[0])
    assert sum(costs[step] for step in runs) - sum(costs) < 1000


def test_a_budget_below_the_largest_step_is_refused():
    schedule, costs = residual(4)
    assert Eviction(RunBytes(schedule), costs).runs(3 * 64, WEIGHINGS[0]) is None


def test_no_more_operations_are_added_than_asked():
    schedule, costs = chain(30)
    bytes_ = RunBytes(schedule)
    budget = int(bytes_.lives(range(len(costs))).load.max() * 0.4)
    eviction = Eviction(bytes_, costs)
    runs = eviction.runs(budget, WEIGHINGS[0])
    added = sum(costs[step] for step in runs) - sum(costs)
    assert eviction.runs(budget, WEIGHINGS[0], added) == runs
    assert eviction.runs(budget, WEIGHINGS[0], added // 2) is None


def test_a_step_that_must_not_run_twice_does_not():
    schedule, costs = chain(30)
    costs[3] = costs[10] = NEVER
    bytes_ = RunBytes(schedule)
    budget = int(bytes_.lives(range(len(costs))).load.max() * 0.5)
    runs = Eviction(bytes_, costs).runs(budget, WEIGHINGS[0])
    assert runs is not None
    assert [runs.count(3), runs.count(10)] == [1, 1]
    assert len(runs) > len(costs)


@given(schedule=schedules(), data=st.data())
def test_random_schedules_compute_the_same_within_any_budget(schedule, data):
    steps = range(len(schedule.steps))
    costs = [data.draw(st.sampled_from([NEVER, 0, 1, 50])) for _ in steps]
    bytes_ = RunBytes(schedule)
    peak = int(bytes_.lives(steps).load.max(initial=0))
    budget = data.draw(st.integers(0, peak))
    runs = Eviction(bytes_, costs).runs(budget, data.draw(st.sampled_from(WEIGHINGS)))
    if runs is None:
        return
    assert all(runs.count(step) == 1 for step in steps if costs[step] == NEVER)
    try:
        made, origin = replayed(schedule, runs, len(steps))
    except PlanError:
        return
    assert executed(made, origin, schedule) == executed(schedule, steps, schedule)
    if not any(alias.kind is not AliasKind.IN_PLACE for s in schedule.steps for alias in s.aliases):
        assert bytes_.lives(runs).load.max(initial=0) <= budget
