"""Checkpoints: at or below the schedules of Chen and of Revolve on uniform chains."""

from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.chains import chain
from tests.planner.problems import schedules
from tests.planner.test_squeeze import check
from tightship.planner import AliasKind, place_schedule
from tightship.planner.checkpoints import Checkpoints
from tightship.planner.recompute import NEVER, Recomputed
from tightship.planner.recompute_bound import least_operations
from tightship.planner.replayed import replayed
from tightship.planner.squeeze import Squeezing, squeeze


def back(length, index):
    """The step that goes back over the value which forward step `index` writes."""
    return 2 * length - 1 - index


def chen(length, segment):
    """The runs of one level of segments: each runs again as a whole before its way back."""
    runs = list(range(length))
    for start in reversed(range(0, length, segment)):
        stop = min(start + segment, length)
        runs += range(start, stop - 1)
        runs += [back(length, index) for index in reversed(range(start, stop))]
    return runs


@cache
def advances(length, slots):
    """The fewest forward steps, and the first checkpoint, with so many slots besides the first."""
    if length <= 1:
        return 0, 0
    if not slots:
        return length * (length - 1) // 2, length - 1
    return min(
        (at + advances(length - at, slots - 1)[0] + advances(at, slots)[0], at)
        for at in range(1, length)
    )


def revolve(length, slots, start=0, stop=None):
    """The runs of the optimum of Griewank and Walther (2000) for a chain."""
    stop = length if stop is None else stop
    if stop - start == 1:
        return [start, back(length, start)]
    if not slots:
        runs = []
        for end in reversed(range(start, stop)):
            runs += [*range(start, end + 1), back(length, end)]
        return runs
    at = start + advances(stop - start, slots)[1]
    return [
        *range(start, at),
        *revolve(length, slots - 1, at, stop),
        *revolve(length, slots, start, at),
    ]


def placed(schedule, costs, runs):
    """Peak and added operations of runs."""
    made, origin = replayed(schedule, runs, len(schedule.steps))
    return place_schedule(made).plan.peak_bytes, sum(costs[i] for i in origin) - sum(costs)


@pytest.mark.parametrize("length", [9, 24, 64])
@pytest.mark.parametrize("slots", [1, 2, 3, 5, 8])
def test_a_uniform_chain_takes_no_more_operations_than_revolve(length, slots):
    schedule, costs = chain(length, 100, 100)
    peak, added = placed(schedule, costs, revolve(length, slots))
    found = squeeze(schedule, costs, budget_bytes=peak)
    check(found, schedule)
    assert found.plan.plan.peak_bytes <= peak
    assert found.added_operations <= added
    assert found.added_operations >= least_operations(schedule, costs, peak)


@pytest.mark.parametrize(("length", "segment"), [(16, 4), (64, 8), (100, 10)])
def test_a_uniform_chain_takes_no_more_operations_than_segments(length, segment):
    schedule, costs = chain(length, 100, 100)
    peak, added = placed(schedule, costs, chen(length, segment))
    assert peak <= 64 * (length // segment + segment + 2)
    found = squeeze(schedule, costs, budget_bytes=peak)
    assert found.plan.plan.peak_bytes <= peak
    assert found.added_operations <= added


def test_a_smaller_budget_costs_no_fewer_operations_down_to_a_few_values():
    schedule, costs = chain(40, 100, 100)
    squeezing = Squeezing(schedule, costs)
    found = [squeezing.within(64 * count) for count in range(42, 4, -1)]
    assert all(
        each.plan.plan.peak_bytes <= 64 * count
        for each, count in zip(found, range(42, 4, -1), strict=True)
    )
    assert all(a.added_operations <= b.added_operations for a, b in pairwise(found))
    assert squeezing.within(None).plan.plan.peak_bytes <= 5 * 64


def test_operations_that_are_estimated_are_those_that_are_added():
    schedule, costs = chain(30, 100, 100)
    plain = Recomputed(schedule, tuple(range(len(schedule.steps))), 0)
    which = Checkpoints(plain, costs, 29)
    for slots in range(6, 30, 3):
        made = which.written(64, slots)
        assert which.added(64, slots) == made.operations
        assert place_schedule(made.schedule).plan.peak_bytes <= 64 * slots


@given(schedule=schedules(), data=st.data())
def test_any_runs_give_what_the_steps_give(schedule, data):
    ties = [any(a.kind is AliasKind.TIED for a in step.aliases) for step in schedule.steps]
    costs = [NEVER if tied else data.draw(st.sampled_from([0, 1, 50, NEVER])) for tied in ties]
    squeezing = Squeezing(schedule, costs)
    for share in (80, 50, 20):
        check(squeezing.within(squeezing.plain.plan.plan.peak_bytes * share // 100), schedule)


def test_tables_are_released_once_a_budget_was_tried():
    """A table of 144 atoms has 5 MB, and each budget has tables of its own."""
    schedule, operations = chain(16)
    squeezing = Squeezing(schedule, operations)
    for share in (0.6, 0.4):
        squeezing.within(int(share * squeezing.plain.given_peak_bytes))
    made = [each for front in squeezing._fronts for each in front.checkpoints(float("inf"))]
    assert made
    assert all(each._table_of is None for each in made)
