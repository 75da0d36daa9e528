"""Plans for steps that run as soon as they can: judged, and replayed out of order."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.planner.parallel.interleavings import CorruptedError, Replay
from tests.planner.problems import schedules
from tests.zoo.light import path_of
from tightship._core import StepOrder
from tightship.cost.schedule import schedule_of
from tightship.errors import InvalidPlanError, PlanError
from tightship.frontend.onnx import open_file
from tightship.planner import Alias, AliasKind, Schedule, ScheduledValue, Step, place_schedule
from tightship.planner.parallel.added_edges import added_edges
from tightship.planner.parallel.dependencies import dependencies, edge_columns
from tightship.planner.parallel.parallel_plan import Paths, path_colours, plan_parallel
from tightship.planner.verify_parallel import verify_parallel


def edges_of(*edges):
    return edge_columns(edges)


@st.composite
def graphs(draw):
    """A number of steps, and edges between them."""
    count = draw(st.integers(2, 12))
    pairs = st.integers(1, count - 1).flatmap(
        lambda after: st.tuples(st.integers(0, after - 1), st.just(after))
    )
    return count, sorted(draw(st.sets(pairs, max_size=20)))


def branches(count: int, length: int) -> Schedule:
    """Chains beside each other, from one input to one sum."""
    values, steps, ends = [ScheduledValue("x", 8, external=True)], [], []
    for branch in range(count):
        before = 0
        for place in range(length):
            values.append(ScheduledValue(f"b{branch}.{place}", 64))
            steps.append(Step(f"s{branch}.{place}", "Op", (before,), (len(values) - 1,)))
            before = len(values) - 1
        ends.append(before)
    values.append(ScheduledValue("y", 64, external=True))
    steps.append(Step("sum", "Sum", tuple(ends), (len(values) - 1,)))
    return Schedule(tuple(values), tuple(steps), (len(values) - 1,))


def replay_often(plan, count):
    for seed in range(count):
        Replay(plan).run(Random(seed))


@given(graph=graphs())
def test_a_step_comes_before_those_that_a_path_leads_to(graph):
    count, edges = graph
    reach = np.zeros((count, count), bool)
    for before, after in sorted(edges, key=lambda edge: edge[1]):
        reach[:, after] |= reach[:, before]
        reach[before, after] = True
    order = StepOrder(count, edges_of(*edges))
    found = [[order.before(a, b) for b in range(count)] for a in range(count)]
    assert (np.array(found) == reach).all()


def test_chains_are_as_many_as_steps_go_beside_each_other():
    order = StepOrder(6, edges_of((0, 1), (1, 2), (2, 5), (0, 3), (3, 4), (4, 5)))
    assert order.chains == 2
    ladder = StepOrder(1000, edges_of(*pairwise(range(1000))))
    assert ladder.chains == 1


@given(schedule=schedules(), seed=st.integers(0, 999))
def test_a_parallel_plan_survives_any_interleaving(schedule, seed):
    plan = plan_parallel(schedule)
    assert added_edges(plan) == ()
    for turn in range(5):
        Replay(plan).run(Random(seed + turn))


@given(schedule=schedules(), seed=st.integers(0, 999))
def test_the_added_edges_make_a_serial_plan_safe(schedule, seed):
    plan = place_schedule(schedule)
    edges = [(edge.before, edge.after) for edge in added_edges(plan)]
    verify_parallel(plan, edges)
    for turn in range(5):
        Replay(plan, edges).run(Random(seed + turn))


@given(schedule=schedules())
def test_no_added_edge_can_be_left_out(schedule):
    plan = place_schedule(schedule)
    assume(not plan.buffers.parts)  # a part is kept as long as the whole, though less would do
    assume(all(value.size_bytes for value in schedule.values))  # an empty one keeps its buffer too
    edges = [(edge.before, edge.after) for edge in added_edges(plan)]
    for index in range(len(edges)):
        with pytest.raises(InvalidPlanError, match="need not have ended"):
            verify_parallel(plan, edges[:index] + edges[index + 1 :])


def test_a_serial_plan_of_branches_is_corrupted_out_of_order():
    plan = place_schedule(branches(3, 4))
    with pytest.raises(CorruptedError):
        replay_often(plan, 100)
    with pytest.raises(InvalidPlanError, match="share bytes"):
        verify_parallel(plan)


def test_branches_keep_apart_and_chains_reuse():
    serial, parallel = place_schedule(branches(3, 4)), plan_parallel(branches(3, 4))
    assert serial.plan.peak_bytes == 4 * 64
    assert parallel.plan.peak_bytes == 6 * 64  # two buffers for each branch, alternately
    assert plan_parallel(branches(1, 9)).plan.peak_bytes == 2 * 64


def test_an_edge_is_priced_by_what_it_adds_to_the_longest_path():
    plan = place_schedule(branches(2, 3))
    edges = added_edges(plan)
    assert edges
    assert all(0 < edge.price <= 3 for edge in edges)
    heavy = added_edges(plan, weights=[10.0] * len(plan.schedule.steps))
    assert [edge.price for edge in heavy] == [10 * edge.price for edge in edges]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inception_v1", "resnet50"])
def test_ten_thousand_interleavings_of_a_network_are_without_a_race(name):
    schedule = schedule_of(open_file(path_of(name)).graph(None)).schedule
    serial, parallel = place_schedule(schedule), plan_parallel(schedule)
    edges = [(edge.before, edge.after) for edge in added_edges(serial)]
    for seed in range(2500):
        Replay(parallel).run(Random(seed))
        Replay(serial, edges).run(Random(seed))


def test_a_part_of_a_part_stays_as_long_as_the_whole():
    values = [ScheduledValue("x", 8, external=True)]
    values += [ScheduledValue(*row, alignment=8) for row in (("a", 8), ("b", 16), ("c", 16))]
    steps = (
        Step("inner", "Op", (0,), (1,)),
        Step("middle", "Concat", (0, 1), (2,), aliases=(Alias(2, 1, AliasKind.PART, 8),)),
        Step("outer", "Concat", (2,), (3,), aliases=(Alias(3, 2, AliasKind.PART, 0),)),
    )
    plan = plan_parallel(Schedule(tuple(values), steps, outputs=(1,)))
    assert plan.plan.peak_bytes == 16
    replay_often(plan, 5)


def test_edges_that_lead_nowhere_are_refused():
    plan = plan_parallel(branches(1, 2))
    with pytest.raises(InvalidPlanError, match="does not lead to a later step"):
        verify_parallel(plan, [(2, 1)])


@given(schedule=schedules(), count=st.integers(1, 3))
def test_along_required_paths_nothing_is_shared_across_them(schedule, count):
    plan = plan_parallel(schedule, Paths(count, is_required=True))
    colours = path_colours(len(schedule.steps), dependencies(schedule), count)
    problem, offset = plan.buffers.problem, plan.plan.offset_bytes
    of_buffer = colours[problem.start_step]
    tops = offset + problem.size_bytes
    for a in range(problem.count):
        for b in range(a):
            if of_buffer[a] != of_buffer[b] and problem.size_bytes[[a, b]].all():
                assert tops[a] <= offset[b] or tops[b] <= offset[a]


@given(schedule=schedules(), count=st.integers(1, 3))
def test_preferred_paths_cost_no_bytes(schedule, count):
    free = plan_parallel(schedule).plan.peak_bytes
    assert plan_parallel(schedule, Paths(count)).plan.peak_bytes <= free


def test_the_longest_paths_are_coloured():
    # 0 - 1 - 2 - 5 is longest; then 3 - 4, which leads from 0 to 5 as well.
    colours = path_colours(6, [(0, 1), (1, 2), (2, 5), (0, 3), (3, 4), (4, 5)], 2)
    assert colours.tolist() == [0, 0, 0, 1, 1, 0]
    with pytest.raises(PlanError, match="at least 1"):
        plan_parallel(branches(1, 1), Paths(0))
