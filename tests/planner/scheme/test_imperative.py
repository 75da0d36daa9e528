from hypothesis import given
from hypothesis import strategies as st

from tests.planner.problems import schedules
from tests.planner.scheme.graphs import sigmoids
from tightship.planner.liveness import problem_of
from tightship.planner.schedule import Schedule, Step
from tightship.planner.scheme.caching_allocator import MIB, CachingAllocator, Policy
from tightship.planner.scheme.imperative import run_imperatively

EXACT = Policy(1, 0, 1, 1, 1, 1)
"""Nothing is rounded, and every segment is as large as its request."""


def test_a_chain_of_sigmoids_needs_two_buffers_at_a_time_whatever_its_length():
    run = run_imperatively(sigmoids(50, 512))
    assert run.peak_live_bytes == 2 * 512
    assert (run.allocate_calls, run.deallocate_calls, run.system_calls) == (51, 50, 1)


def test_the_notes_warning_a_list_of_all_values_frees_none_of_them():
    run = run_imperatively(sigmoids(50, 512), hold_references=True)
    assert run.peak_live_bytes == 51 * 512
    assert (run.allocate_calls, run.deallocate_calls) == (51, 0)


@given(schedules())
def test_unrounded_the_largest_load_is_what_lives_at_once(schedule):
    steps = tuple(Step(s.name, s.operator, s.reads, s.writes, 0, s.aliases) for s in schedule.steps)
    schedule = Schedule(schedule.values, steps, schedule.outputs)
    apart = problem_of(schedule, in_place=False).problem
    solid = int((apart.size_bytes > 0).sum())
    run = run_imperatively(schedule, policy=EXACT)
    largest = int(apart.live_bytes(len(steps)).max(initial=0))
    assert largest <= run.peak_live_bytes <= largest + apart.count - solid
    assert run.peak_live_bytes <= run.reserved_bytes


@given(schedules())
def test_held_references_save_nothing(schedule):
    held = run_imperatively(schedule, hold_references=True)
    free = run_imperatively(schedule)
    assert held.allocate_calls == free.allocate_calls
    assert held.deallocate_calls <= free.deallocate_calls <= free.allocate_calls
    assert held.peak_live_bytes >= free.peak_live_bytes
    assert held.reserved_bytes >= free.reserved_bytes


@given(st.lists(st.one_of(st.integers(1, 30 * MIB), st.integers(-20, -1)), max_size=40))
def test_an_allocator_returns_all_it_has_cut(events):
    allocator = CachingAllocator(Policy())
    live = []
    for event in events:
        if event > 0:
            live.append(allocator.allocate(event))
        elif live:
            allocator.deallocate(live.pop(event % len(live)))
        assert len(set(live)) == len(live)
        assert allocator.live_bytes <= allocator.peak_live_bytes <= allocator.reserved_bytes
    for block in live:
        allocator.deallocate(block)
    reserved = allocator.reserved_bytes
    assert allocator.live_bytes == 0
    assert sum(size for free in allocator._free.values() for size, _ in free) == reserved


def test_segments_are_cut_and_reused():
    allocator = CachingAllocator(Policy())
    one, other = allocator.allocate(3 * MIB), allocator.allocate(4 * MIB)
    assert (allocator.system_calls, allocator.reserved_bytes) == (1, 20 * MIB)
    allocator.deallocate(one)
    allocator.deallocate(other)
    allocator.allocate(20 * MIB)
    assert allocator.system_calls == 1
    allocator.allocate(100)
    assert allocator.reserved_bytes == 22 * MIB
