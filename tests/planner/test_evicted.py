"""Schedules by eviction, each with fewer operations, and those that others are improved to."""

from itertools import pairwise

from tests.planner.chains import chain
from tests.planner.test_eviction import residual
from tests.planner.test_spared import segments
from tests.planner.test_squeeze import executed
from tightship.planner.evicted import Evicted
from tightship.planner.recompute import Recomputation
from tightship.planner.run_bytes import RunBytes


def test_each_schedule_has_fewer_operations_and_computes_the_same():
    schedule, costs = residual(16)
    peak = int(RunBytes(schedule).lives(range(len(costs))).load.max())
    found = [*Evicted(Recomputation(schedule, costs)).within(peak // 3, sum(costs))]
    assert found
    assert all(one.operations > other.operations for one, other in pairwise(found))
    own = executed(schedule, range(len(costs)), schedule)
    assert all(executed(each.schedule, each.origin, schedule) == own for each in found)


def test_no_more_operations_are_added_than_asked():
    schedule, costs = residual(16)
    peak = int(RunBytes(schedule).lives(range(len(costs))).load.max())
    assert [*Evicted(Recomputation(schedule, costs)).within(peak // 3, 1)] == []


def test_runs_that_a_budget_has_room_for_are_left_out():
    schedule, costs = chain(24)
    recomputation = Recomputation(schedule, costs)
    made = recomputation.replayed(segments(24, 6))
    peak = int(RunBytes(schedule).lives(range(48)).load.max())
    better = Evicted(recomputation).improved(made, peak)
    assert better.operations == 0
    assert Evicted(recomputation).improved(better, peak) is None
