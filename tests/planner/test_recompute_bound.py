"""Bound on recomputation: never more than the cost of a way that was found."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.chains import chain
from tests.planner.problems import schedules
from tightship.planner import Schedule, ScheduledValue, Step
from tightship.planner.recompute import NEVER
from tightship.planner.recompute_bound import least_operations
from tightship.planner.squeeze import squeeze


@pytest.mark.parametrize("share", [0.9, 0.75, 0.6])
def test_what_was_found_adds_no_less(share):
    schedule, costs = chain(40)
    whole = squeeze(schedule, costs, budget_bytes=2**40).plan.plan.peak_bytes
    budget = int(share * whole)
    found = squeeze(schedule, costs, budget_bytes=budget)
    assert found.plan.plan.peak_bytes <= budget
    least = least_operations(schedule, costs, budget)
    assert 0.4 * found.added_operations <= least <= found.added_operations


def test_a_smaller_budget_needs_no_less():
    schedule, costs = chain(40)
    least = [least_operations(schedule, costs, 64 * count) for count in range(45, 0, -1)]
    assert all(one <= other for one, other in pairwise(least))
    assert least[0] == 0
    assert least[-1] > sum(costs)  # one value is fewer than a step touches


def test_the_cheapest_values_to_compute_again_are_counted():
    values = (ScheduledValue("x", 64, external=True), *(ScheduledValue(n, 64) for n in "abcde"))
    steps = (
        Step("a", "A", (0,), (1,)),
        Step("b", "B", (0,), (2,)),
        Step("c", "C", (1, 2), (3,)),
        Step("d", "D", (3,), (4,)),
        Step("e", "E", (4, 1), (5,)),
        Step("f", "F", (5, 2), ()),
    )
    schedule = Schedule(values, steps)
    costs = [7, 5, 100, 100, 100, 100]
    assert [least_operations(schedule, costs, 64 * room) for room in (4, 3)] == [0, 5]
    assert least_operations(schedule, [NEVER] * 6, 64 * 3) > 1000


@given(schedule=schedules(), data=st.data())
def test_the_plain_order_within_its_own_peak_needs_nothing(schedule, data):
    costs = [data.draw(st.sampled_from([0, 1, 50, NEVER])) for _ in schedule.steps]
    found = squeeze(schedule, costs, budget_bytes=2**60)
    assert least_operations(schedule, costs, found.plan.plan.peak_bytes) == 0
