"""Schedules squeezed into budgets: what runs again, and what that costs."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.chains import chain
from tests.planner.oracles import Replay
from tests.planner.problems import schedules
from tightship._core import min_cut
from tightship.planner import Alias, AliasKind, Schedule, ScheduledValue, Step, place_schedule
from tightship.planner.parallel.dependencies import edge_columns
from tightship.planner.recompute import NEVER, Recomputation, ties_early
from tightship.planner.rematerialized import rematerialized
from tightship.planner.squeeze import squeeze


def executed(schedule, origin, given):
    """Map each step of the given schedule to its reads and writes, by the steps that wrote them.

    Clones compute the same as their step, so operands are known by the original steps.

    Clones compute what their step computes: operands are known by the steps that they come from.
    """
    content = {v: ("given", v) for v, value in enumerate(schedule.values) if value.external}
    seen = {}
    for step, index in zip(schedule.steps, origin, strict=True):
        reads = tuple(content[v] for v in step.reads)
        assert seen.setdefault(index, reads) == reads
        for place, value in enumerate(step.writes):
            content[value] = (index, place)
    assert set(seen) == set(range(len(given.steps)))
    return [content[v] for v in schedule.outputs]


def check(found, schedule):
    own = executed(schedule, range(len(schedule.steps)), schedule)
    assert executed(found.plan.schedule, found.origin, schedule) == own
    assert found.plan.plan.peak_bytes <= place_schedule(schedule).plan.peak_bytes
    Replay(found.plan.schedule, found.plan.buffers, found.plan.plan.offset_bytes).run()


@pytest.mark.parametrize("share", [0.9, 0.75, 0.6])
def test_a_chain_is_squeezed_into_a_budget_and_computes_the_same(share):
    schedule, costs = chain(30)
    budget = int(place_schedule(schedule).plan.peak_bytes * share)
    found = squeeze(schedule, costs, budget_bytes=budget)
    check(found, schedule)
    assert found.plan.plan.peak_bytes <= budget
    again = [index for index in set(found.origin) if found.origin.count(index) > 1]
    assert found.added_operations == sum(costs[index] for index in again)
    assert len(again) == found.clones


def test_cheap_steps_run_again_before_dear_ones():
    schedule, costs = chain(30)
    budget = int(place_schedule(schedule).plan.peak_bytes * 0.6)
    found = squeeze(schedule, costs, budget_bytes=budget)
    assert found.added_operations <= 15 * 10


def test_a_smaller_budget_costs_no_fewer_operations():
    schedule, costs = chain(40)
    peak = place_schedule(schedule).plan.peak_bytes
    budgets = [peak * share // 100 for share in (*range(100, 10, -10), 5, 2)]
    found = [squeeze(schedule, costs, budget_bytes=budget) for budget in budgets]
    met = [
        each.added_operations
        for each, budget in zip(found, budgets, strict=True)
        if each.plan.plan.peak_bytes <= budget
    ]
    assert met == sorted(met)
    assert met[0] == 0
    assert len(met) >= 5
    assert len({each.plan.plan.peak_bytes for each in found[len(met) :]}) == 1


def test_the_most_operations_are_kept_to_and_more_of_them_save_more():
    schedule, costs = chain(40)
    peaks = []
    for limit in (0, 100, 1000, 10_000):
        found = squeeze(schedule, costs, operations_max=limit)
        assert found.added_operations <= limit
        peaks.append(found.plan.plan.peak_bytes)
    assert all(more <= less for less, more in pairwise(peaks))
    assert peaks[-1] < 0.6 * peaks[0]


def test_a_step_that_must_not_run_twice_does_not():
    schedule, costs = chain(20)
    dice = [NEVER if index == 7 else cost for index, cost in enumerate(costs)]
    found = squeeze(schedule, dice)
    assert found.clones > 0
    assert found.origin.count(7) == 1


@given(schedule=schedules(), data=st.data())
def test_a_squeezed_schedule_runs_and_is_never_larger(schedule, data):
    costs = [
        NEVER
        if any(alias.kind is AliasKind.TIED for alias in step.aliases)
        else data.draw(st.sampled_from([0, 1, 50, NEVER]))
        for step in schedule.steps
    ]
    check(squeeze(schedule, costs), schedule)


def test_a_clone_reads_a_weight_before_it_is_updated():
    weight = ScheduledValue("w", 64, external=True)
    values = (weight, ScheduledValue("w.next", 64, external=True),
              *(ScheduledValue(name, 64) for name in ("a", "b", "c", "d")))  # fmt: skip
    steps = (
        Step("a", "A", (0,), (2,)),
        Step("b", "B", (2,), (3,)),
        Step("update", "Update", (0, 3), (1,), 0, (Alias(1, 0, AliasKind.TIED),)),
        Step("c", "C", (3,), (4,)),
        Step("d", "D", (2, 4), (5,)),
    )
    schedule = Schedule(values, (steps[0], steps[1], steps[3], steps[4], steps[2]), (5,))
    made, origin = rematerialized(schedule, 1, {0})
    names = [step.name for step in made.steps]
    assert names.index("a.again") < names.index("update")
    assert origin.count(0) == 2


def test_updates_written_over_each_other_follow_the_last_reader_in_their_order():
    names = ("w", "w.half", "w.next", "one", "other", "loss")
    values = tuple(ScheduledValue(name, 64, external=name.startswith("w")) for name in names)
    steps = (
        Step("one", "A", (0,), (3,)),
        Step("other", "A", (0,), (4,)),
        Step("loss", "B", (0, 3), (5,)),
        Step("late", "C", (5,), ()),
        Step("last", "D", (), ()),
        Step("half", "Update", (0, 5), (1,), 0, (Alias(1, 0, AliasKind.TIED),)),
        Step("whole", "Update", (1, 4), (2,), 0, (Alias(2, 1, AliasKind.TIED),)),
    )
    early, order = ties_early(Schedule(values, steps, (3,)))
    names = [step.name for step in early.steps]
    assert names == ["one", "other", "loss", "late", "half", "whole", "last"]
    assert order == (0, 1, 2, 3, 5, 6, 4)


def test_a_tie_stays_where_its_bytes_are_read_under_another_name():
    names = ("w", "w.next", "shown", "gradient", "loss")
    values = tuple(ScheduledValue(name, 64, external=name.startswith("w")) for name in names)
    steps = (
        Step("shown", "Reshape", (0,), (2,), 0, (Alias(2, 0, AliasKind.VIEW),)),
        Step("gradient", "A", (), (3,)),
        Step("loss", "B", (2,), (4,)),
        Step("update", "Update", (0, 3), (1,), 0, (Alias(1, 0, AliasKind.TIED),)),
    )
    schedule = Schedule(values, steps, (4,))
    assert ties_early(schedule) == (schedule, (0, 1, 2, 3))


@given(schedule=schedules())
def test_ties_come_early_where_their_bytes_are_not_read_later(schedule):
    early, origin = ties_early(schedule)
    own = executed(schedule, range(len(schedule.steps)), schedule)
    assert executed(early, origin, schedule) == own
    plan = place_schedule(early)
    Replay(early, plan.buffers, plan.plan.offset_bytes).run()


@given(data=st.data())
def test_the_cut_is_no_dearer_than_any_other(data):
    count = data.draw(st.integers(2, 7))
    nodes = st.integers(0, count - 1)
    edges = data.draw(st.lists(st.tuples(nodes, nodes, st.integers(0, 9)), max_size=14))
    columns = edge_columns([(a, b) for a, b, _ in edges])
    capacity = np.array([c for *_, c in edges], np.int64)
    side = min_cut(count, columns, capacity, 0, count - 1)

    def price(inside):
        return sum(c for a, b, c in edges if inside[a] and not inside[b])

    others = ([1, *(code >> bit & 1 for bit in range(count - 2)), 0] for code in range(2**count))
    assert side[0] == 1
    assert side[count - 1] == 0
    assert price(side) == min(price(other) for other in others)


def test_operations_rise_with_the_price():
    schedule, costs = chain(30)
    choices = Recomputation(schedule, costs)
    added = [choices.at_price(price).operations for price in np.geomspace(0.01, 1e5, 30)]
    assert added == sorted(added)
    assert added[0] == 0
    assert choices.written(choices.at_price(0).again).schedule == schedule


def test_choices_are_all_of_least_cost_at_some_price():
    schedule, costs = chain(12, cheap=7_000_000, dear=10**9)
    choices = Recomputation(schedule, costs)
    found = choices.choices(1e12)
    assert found[0].again == frozenset()
    assert len(found) > 2
    kept = [choice.kept_bytes for choice in found]
    assert kept == sorted(kept, reverse=True)
    slopes = [
        (dear.operations - cheap.operations) / (cheap.kept_bytes - dear.kept_bytes)
        for cheap, dear in pairwise(found)
    ]
    assert slopes == sorted(slopes)
    for price in np.geomspace(1e4, 1e10, 20):
        best = choices.at_price(price)
        least = min(choice.operations + price * choice.kept_bytes for choice in found)
        assert best.operations + price * best.kept_bytes == pytest.approx(least, rel=1e-3)


@given(data=st.data())
def test_any_steps_can_run_again(data):
    schedule, costs = chain(8)
    choices = Recomputation(schedule, costs)
    steps = st.integers(0, choices.turn)
    made = choices.written(data.draw(st.frozensets(steps)))
    own = executed(schedule, range(len(schedule.steps)), schedule)
    assert executed(made.schedule, made.origin, schedule) == own


def test_a_value_that_is_shown_under_another_shape_is_needed_when_that_is():
    values = [ScheduledValue("x", 64, external=True)]
    sizes = {"a": 320, "shown": 320, "b": 640, "c": 0, "d": 0}
    values += [ScheduledValue(name, size) for name, size in sizes.items()]
    steps = (
        Step("a", "A", (0,), (1,)),
        Step("shown", "Reshape", (1,), (2,), 0, (Alias(2, 1, AliasKind.VIEW),)),
        Step("b", "B", (0,), (3,)),
        Step("c", "C", (2,), (4,)),
        Step("d", "D", (3, 4), (5,)),
    )
    choices = Recomputation(Schedule(tuple(values), steps, (5,)), [10, 0, 10, 10, 10])
    assert choices.turn == 2
    shown, late = (size * gap / 32 * (1 + gap / 2) / 2 for size, gap in ((320, 1), (640, 2)))
    assert choices.at_price(0.01).kept_bytes == pytest.approx(shown + late)
