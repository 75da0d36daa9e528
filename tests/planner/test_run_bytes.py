"""Bytes of runs: those of the schedule's plan, with operands overwritten and runs left out."""

import pytest

from tests.planner.chains import chain
from tightship.planner import Alias, AliasKind, Schedule, ScheduledValue, Step
from tightship.planner.bound import lower_bound
from tightship.planner.liveness import problem_of
from tightship.planner.run_bytes import RunBytes


def test_live_bytes_are_those_of_the_schedule():
    schedule, _ = chain(10)
    own = int(RunBytes(schedule).lives(range(20)).load.max())
    assert own == lower_bound(problem_of(schedule).problem)


def test_views_and_ties_lie_in_the_bytes_of_their_root():
    values = tuple(ScheduledValue(name, 64) for name in "abc")
    view = Alias(1, 0, AliasKind.VIEW)
    steps = (
        Step("a", "F", (), (0,)),
        Step("b", "View", (0,), (1,), 0, (view,)),
        Step("c", "F", (1,), (2,), 32),
    )
    bytes_ = RunBytes(Schedule(values, steps, (2,)))
    assert bytes_.root == [0, 0, 2]
    assert bytes_.reads == [(), (0,), (0,)]
    assert bytes_.writes == [(0,), (), (2,)]
    assert bytes_.lives(range(3)).load.tolist() == [64, 64, 160]


@pytest.mark.parametrize("runs", [[0, 1, 0, 2], [0, 0, 1, 2], [0, 1, 0, 0, 2]])
def test_runs_that_none_reads_are_not_needed(runs):
    values = tuple(ScheduledValue(name, 64) for name in "abc")
    steps = (
        Step("a", "F", (), (0,)),
        Step("b", "F", (0,), (1,)),
        Step("c", "F", (1,), (2,)),
    )
    needed = RunBytes(Schedule(values, steps, (2,))).needed(runs)
    assert [runs[place] for place in needed] == [0, 1, 2]
