"""A program that repeats itself runs within the planner's peak from its second iteration on."""

import random

import pytest

from tightship.errors import InputError, OutOfMemoryError
from tightship.plug.hints import iteration, plan_ahead
from tightship.resource import HostResource, LimitingResource, StatisticsResource, counted
from tightship.resource.virtual import HostDevice, PlannedResource, StealingVirtualResource

KIB = 1 << 10


@pytest.fixture
def upstream():
    return StatisticsResource(StealingVirtualResource(HostDevice(), page_bytes=1 << 16))


def run(resource, seed, leave_out=None):
    """Blocks that come and go, the same for the same seed; the most that were live."""
    choice, live, most = random.Random(seed), [], 0
    for step in range(300):
        if live and choice.random() < 0.5:
            give_back(resource, live.pop(choice.randrange(len(live))))
            continue
        size = choice.randrange(1, 300) * KIB
        live.append((resource.allocate(size, 64) if step != leave_out else None, size))
        most = max(most, sum(size for _, size in live))
    while live:
        give_back(resource, live.pop())
    return most


def give_back(resource, block):
    if block[0] is not None:
        resource.deallocate(*block)


def test_the_second_iteration_takes_what_the_planner_says_and_nothing_grows(upstream):
    resource = PlannedResource(upstream)
    resource.restart()
    most = run(resource, 1)
    plan = plan_ahead(resource)
    assert most <= plan.peak_bytes == resource.capacity_bytes == plan.lower_bound_bytes
    with counted(upstream) as now:
        for _ in range(3):
            resource.restart()
            run(resource, 1)
    assert now().total_count == 0
    assert resource.surprise_count == 0
    assert upstream.counters().current_bytes == plan.peak_bytes


def test_an_iteration_plans_itself(upstream):
    resource = PlannedResource(upstream)
    for _ in range(3):
        with iteration(resource):
            run(resource, 2)
    assert resource.surprise_count == 0
    assert resource.hit_count == 2 * sum(1 for _ in resource.recorded())


@pytest.mark.parametrize("left_out", [1, 40, 200])
def test_a_request_that_fails_to_come_leaves_the_others_where_they_were_planned(upstream, left_out):
    resource = PlannedResource(upstream)
    with iteration(resource):
        run(resource, 3)
    resource.restart()
    run(resource, 3, leave_out=left_out)
    assert resource.hit_count >= len(resource.recorded()) - 2


def test_another_program_is_served_by_upstream_and_counted(upstream):
    resource = PlannedResource(upstream)
    with iteration(resource):
        run(resource, 4)
    resource.restart()
    run(resource, 5)
    assert resource.surprise_count > 0
    assert upstream.counters().current_bytes == resource.capacity_bytes


def test_a_block_that_stays_too_long_is_never_given_twice(upstream):
    resource = PlannedResource(upstream)
    with iteration(resource):
        for size in (KIB, 2 * KIB):
            resource.deallocate(resource.allocate(size), size)
    resource.restart()
    first = resource.allocate(KIB)
    second = resource.allocate(2 * KIB)
    assert (resource.hit_count, resource.surprise_count) == (1, 1)
    assert not first <= second < first + KIB
    resource.deallocate(second, 2 * KIB)
    resource.deallocate(first, KIB)


def test_what_outlives_the_iteration_is_left_to_upstream(upstream):
    resource = PlannedResource(upstream)
    with iteration(resource):
        kept = resource.allocate(4 * KIB)
        resource.deallocate(resource.allocate(KIB), KIB)
    assert resource.capacity_bytes == KIB
    resource.deallocate(kept, 4 * KIB)
    assert upstream.counters().current_bytes == KIB


def test_a_surprise_is_planned_for_next_time(upstream):
    resource = PlannedResource(upstream)
    for seed in (6, 7, 7):
        with iteration(resource):
            run(resource, seed)
    before = resource.surprise_count
    with iteration(resource):
        run(resource, 7)
    assert resource.surprise_count == before


def test_a_live_block_keeps_its_plan():
    resource = PlannedResource(HostResource())
    with iteration(resource):
        resource.deallocate(resource.allocate(KIB), KIB)
    resource.restart()
    block = resource.allocate(KIB)
    with pytest.raises(InputError, match="1 blocks of the plan before are live"):
        resource.set_plan([], 0, 1)
    resource.deallocate(block, KIB)


def test_a_plan_that_does_not_fit_upstream_leaves_the_resource_without_one():
    resource = PlannedResource(LimitingResource(HostResource(), 8 * KIB))
    with pytest.raises(OutOfMemoryError):
        resource.set_plan([(16 * KIB, 1, 0)], 16 * KIB, 1)
    assert resource.capacity_bytes == 0
    resource.deallocate(resource.allocate(KIB), KIB)


@pytest.mark.parametrize("row", [(KIB + 1, 1, 0), (KIB, 1, 1), (1, 64, 32), (1, 1 << 20, 0)])
def test_a_request_outside_of_the_plan_is_refused(row):
    with pytest.raises(InputError, match="does not lie within"):
        PlannedResource(HostResource()).set_plan([row], KIB, 64)


def test_misuse_of_planned_blocks_is_refused():
    resource = PlannedResource(HostResource())
    with iteration(resource):
        resource.deallocate(resource.allocate(KIB), KIB)
    resource.restart()
    block = resource.allocate(KIB)
    with pytest.raises(InputError, match="no block begins"):
        resource.deallocate(block + 1, KIB)
    with pytest.raises(InputError, match="size"):
        resource.deallocate(block, KIB - 1)
    resource.deallocate(block, KIB)
    with pytest.raises(InputError):
        resource.deallocate(block, KIB)
