"""Plans for a number of workers: the price, its bound, and that no interleaving corrupts them."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.parallel.interleavings import CorruptedError, Replay
from tests.planner.parallel.test_parallel_plan import branches, replay_often
from tests.planner.problems import schedules
from tightship.planner import place_schedule
from tightship.planner.parallel.added_edges import added_edges
from tightship.planner.parallel.dependencies import dependencies
from tightship.planner.parallel.longest_path import longest_paths
from tightship.planner.parallel.makespan import makespan
from tightship.planner.parallel.parallel_plan import plan_parallel
from tightship.planner.parallel.worker_plan import plan_for_workers
from tightship.planner.verify_parallel import verify_parallel


def chosen(schedule, workers=2, **bounds):
    return plan_for_workers(schedule, workers, [1] * len(schedule.steps), **bounds)


@given(
    schedule=schedules(),
    workers=st.integers(1, 4),
    added=st.none() | st.integers(0, 200),
    seed=st.integers(0, 999),
)
def test_a_plan_survives_any_interleaving_that_its_waits_allow(schedule, workers, added, seed):
    found = chosen(schedule, workers, added_bytes=added)
    verify_parallel(found.plan, found.concurrency.edges)
    for turn in range(5):
        Replay(found.plan, found.concurrency.edges).run(Random(seed + turn))


@given(schedule=schedules(), workers=st.integers(1, 4), added=st.integers(0, 200))
def test_the_arena_keeps_to_its_bound(schedule, workers, added):
    serial = place_schedule(schedule).plan.peak_bytes
    found = chosen(schedule, workers, added_bytes=added)
    assert found.plan.plan.peak_bytes <= serial + added
    assert found.concurrency.added_bytes == found.plan.plan.peak_bytes - serial
    assert found.concurrency.bound_bytes == serial + added
    tight = chosen(schedule, workers, arena_bytes_max=serial + added)
    assert tight.plan.plan.peak_bytes <= serial + added
    assert chosen(schedule, workers, arena_bytes_max=0).plan.plan.peak_bytes <= serial


@given(schedule=schedules(), workers=st.integers(1, 4))
def test_what_it_says_of_itself_holds(schedule, workers):
    found = chosen(schedule, workers)
    said, edges = found.concurrency.plan, found.concurrency.edges
    every = sorted({*dependencies(schedule), *edges})
    ones = [1] * len(schedule.steps)
    assert said.arena_bytes == found.plan.plan.peak_bytes
    assert said.added_edges == len(edges) == len(added_edges(found.plan))
    assert said.longest_chain == longest_paths(ones, every).longest
    assert said.operations == makespan(ones, every, workers)
    assert found.concurrency.operations == len(ones)


@given(schedule=schedules())
def test_nothing_is_paid_for_one_worker(schedule):
    found = chosen(schedule, 1).concurrency
    assert found.added_bytes <= 0
    assert found.plan.operations == found.operations


def test_branches_cost_bytes_and_a_bound_takes_them_back():
    schedule = branches(3, 4)
    serial, free = place_schedule(schedule), plan_parallel(schedule)
    apart = chosen(schedule, 3).concurrency
    assert apart.edges == ()
    assert apart.plan.longest_chain == 5
    assert apart.added_bytes == free.plan.peak_bytes - serial.plan.peak_bytes > 0
    bound = chosen(schedule, 3, added_bytes=0).concurrency
    assert bound.added_bytes == 0
    assert bound.plan.operations > apart.plan.operations
    assert [each.name for each in bound.choices][::2] == ["one after another"]


def test_a_plan_between_the_two_is_taken_where_the_bound_allows_no_more():
    schedule = branches(4, 12)
    serial, free = place_schedule(schedule), plan_parallel(schedule)
    between = (free.plan.peak_bytes - serial.plan.peak_bytes) // 2
    names = {chosen(schedule, 2, added_bytes=each).concurrency.plan.name
             for each in range(0, 2 * between + 1, 8)}  # fmt: skip
    assert names >= {"as soon as they can"}
    assert len(names) >= 2


def test_a_chain_is_planned_as_for_one_worker():
    found = chosen(branches(1, 9)).concurrency
    assert (found.added_bytes, found.plan.longest_chain) == (0, 10)


def test_waits_that_the_executor_keeps_are_not_added_but_used():
    schedule = branches(2, 3)
    steps = len(schedule.steps)
    kept = [(index, index + 1) for index in range(steps - 1)]
    found = chosen(schedule, 2, waits_of=lambda _: kept)
    assert found.concurrency.edges == ()
    assert found.plan.plan.peak_bytes == place_schedule(schedule).plan.peak_bytes
    with pytest.raises(CorruptedError):
        replay_often(found.plan, 100)
    for seed in range(20):
        Replay(found.plan, kept).run(Random(seed))
