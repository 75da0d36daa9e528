"""Orders of steps: never worse, and on small graphs the best of all."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.oracles import Replay
from tests.planner.problems import schedules
from tightship.planner import Alias, AliasKind, Schedule, ScheduledValue, Step, place_schedule
from tightship.planner.liveness import problem_of
from tightship.planner.parallel.dependencies import dependencies
from tightship.planner.reorder import in_order, least_order, reorder


@st.composite
def small(draw):
    """Up to 6 steps of one output, each of which may be written over one input as large."""
    count = draw(st.integers(1, 6))
    values, steps = [ScheduledValue("x", 8, 1, external=True)], []
    for index in range(count):
        reads = sorted(draw(st.sets(st.integers(0, index), max_size=3)))
        values.append(ScheduledValue(f"v{index}", draw(st.sampled_from([1, 2, 5])), 1))
        over = [r for r in reads if values[r].size_bytes == values[-1].size_bytes][:1]
        aliases = [Alias(index + 1, source, AliasKind.IN_PLACE) for source in over if source]
        taken = tuple(aliases if draw(st.booleans()) else ())
        scratch = draw(st.sampled_from([0, 0, 3]))
        steps.append(Step(f"s{index}", "Op", tuple(reads), (index + 1,), scratch, taken))
    kept = draw(st.sets(st.integers(1, count), max_size=2))
    return Schedule(tuple(values), tuple(steps), tuple(sorted(kept)))


def load_of(schedule):
    """The largest load, from lifetimes after in-place aliases were taken."""
    problem = problem_of(schedule).problem
    rows = list(zip(problem.size_bytes, problem.start_step, problem.stop_step, strict=True))
    return max(
        sum(int(size) for size, start, stop in rows if start <= step < stop)
        for step in range(len(schedule.steps))
    )


def orders(schedule):
    """Every order that dependencies allow."""
    before = {(a, b) for a, b in dependencies(schedule)}

    def extend(done):
        if len(done) == len(schedule.steps):
            yield done
        for step in range(len(schedule.steps)):
            if step not in done and all(a in done for a, b in before if b == step):
                yield from extend((*done, step))

    return extend(())


@given(schedule=small())
def test_no_order_of_a_small_graph_needs_less(schedule):
    found = least_order(schedule)
    assert found.is_least
    assert found.live_bytes == load_of(in_order(schedule, found.steps))
    assert found.live_bytes == min(load_of(in_order(schedule, order)) for order in orders(schedule))


@given(schedule=schedules())
def test_a_reordered_schedule_runs_and_its_peak_is_no_larger(schedule):
    found = reorder(schedule)
    assert found.plan.plan.peak_bytes <= place_schedule(schedule).plan.peak_bytes
    assert found.lower_bound_bytes <= found.plan.plan.peak_bytes
    assert in_order(schedule, found.order) == found.plan.schedule
    place = {step: index for index, step in enumerate(found.order)}
    assert all(place[before] < place[after] for before, after in dependencies(schedule))
    Replay(found.plan.schedule, found.plan.buffers, found.plan.plan.offset_bytes).run()


def branches(count, length, size=64):
    """Chains of rising sizes side by side, all begun before any is ended, that one step joins."""
    values = [ScheduledValue("x", 8, 1, external=True)]
    ends = dict.fromkeys(range(count), 0)
    steps = []
    for place in range(length):
        for branch in range(count):
            width = 1 if place == length - 1 else size * (1 + place % 3)
            values.append(ScheduledValue(f"v{branch}.{place}", width, 1))
            steps.append(Step(f"s{branch}.{place}", "Op", (ends[branch],), (len(values) - 1,)))
            ends[branch] = len(values) - 1
    values.append(ScheduledValue("y", 8, 1, external=True))
    steps.append(Step("join", "Join", tuple(ends.values()), (len(values) - 1,)))
    return Schedule(tuple(values), tuple(steps), (len(values) - 1,))


@pytest.mark.parametrize(("count", "length"), [(8, 7), (20, 10), (100, 100)])
def test_branches_that_run_beside_each_other_run_one_after_another(count, length):
    schedule = branches(count, length)
    started = time.process_time()
    found = reorder(schedule)
    assert time.process_time() - started < 5
    assert found.plan.plan.peak_bytes == (2 + 3) * 64 + count - 1
    assert found.given_peak_bytes > found.plan.plan.peak_bytes


def test_parts_between_steps_that_all_wait_for_are_ordered_one_by_one():
    part = branches(6, 5)
    steps, values, last = [], [part.values[0]], 0
    for turn in range(4):
        offset = len(values) - 1
        values += [replace(v, name=f"{v.name}/{turn}", external=False) for v in part.values[1:]]
        steps += [
            replace(
                step,
                reads=tuple(last if v == 0 else v + offset for v in step.reads),
                writes=tuple(v + offset for v in step.writes),
            )
            for step in part.steps
        ]
        last = len(values) - 1
    found = reorder(Schedule(tuple(values), tuple(steps), (last,)))
    assert len(steps) > 64
    assert found.lower_bound_bytes == found.plan.plan.peak_bytes
    assert found.plan.plan.peak_bytes < found.given_peak_bytes


def test_a_step_that_writes_over_bytes_for_good_stays_behind_their_readers():
    values = (
        ScheduledValue("w", 64, external=True),
        ScheduledValue("d", 64),
        ScheduledValue("w.next", 64, external=True),
        ScheduledValue("y", 64),
        ScheduledValue("z", 8),
    )
    steps = (
        Step("grad", "Grad", (), (1,)),
        Step("read", "Read", (0,), (3,)),
        Step("end", "End", (3,), (4,)),
        Step("update", "Update", (0, 1), (2,), 0, (Alias(2, 0, AliasKind.TIED),)),
    )
    found = reorder(Schedule(values, steps, (4,)))
    assert found.order.index(3) > found.order.index(1)
    assert found.plan.plan.peak_bytes == 64 + 8
