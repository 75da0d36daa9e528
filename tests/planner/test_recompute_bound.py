"""Bound on recomputation: never more than the cost of a way that was found."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.chains import chain
from tests.planner.problems import schedules
from tightship.planner import Alias, AliasKind, Schedule, ScheduledValue, Step, place_schedule
from tightship.planner.recompute import NEVER
from tightship.planner.recompute_bound import least_bytes, least_operations
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


def test_the_largest_step_is_what_any_way_to_run_a_chain_takes():
    schedule, costs = chain(40)
    found = squeeze(schedule, costs).plan.plan.peak_bytes
    assert least_bytes(schedule) == 2 * 64  # a way back writes over one of the two that it reads
    assert least_bytes(schedule) < found


def test_scratch_and_outputs_count_and_values_that_show_the_same_bytes_count_once():
    values = (ScheduledValue("x", 64, external=True), *(ScheduledValue(n, 64) for n in "abcd"))
    steps = (
        Step("a", "A", (0,), (1,), 100),
        Step("b", "Reshape", (1,), (2,), 0, (Alias(2, 1, AliasKind.VIEW),)),
        Step("c", "C", (1, 2), (3,), 10),
        Step("d", "D", (3,), (4,), 0, (Alias(4, 3, AliasKind.IN_PLACE),)),
    )
    assert least_bytes(Schedule(values, steps)) == 100 + 64
    assert least_bytes(Schedule(values, steps, (2, 3, 4))) == 3 * 64


@given(schedule=schedules(), data=st.data())
def test_no_plan_takes_less_than_its_steps(schedule, data):
    costs = [data.draw(st.sampled_from([0, 1, 50, NEVER])) for _ in schedule.steps]
    assert least_bytes(schedule) <= place_schedule(schedule).plan.peak_bytes
    assert least_bytes(schedule) <= squeeze(schedule, costs).plan.plan.peak_bytes
