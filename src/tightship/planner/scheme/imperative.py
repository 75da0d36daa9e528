"""Simulates the memory of a graph that an imperative framework runs, allocator included."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tightship.planner.liveness import problem_of
from tightship.planner.schedule import Schedule
from tightship.planner.schedule_plan import Buffers
from tightship.planner.scheme.caching_allocator import CachingAllocator, Policy

DEFAULT_POLICY = Policy()


@dataclass(frozen=True, slots=True)
class Imperative:
    """Memory and calls of a simulated run.

    Attributes:
        peak_live_bytes: Most bytes that values and scratch held at once, rounded by the allocator.
        reserved_bytes: Bytes that the allocator had obtained from the system at the end, which is
            the figure that a process monitor shows.
        allocate_calls: Calls that allocated values and scratch.
        deallocate_calls: Calls that deallocated them during the run.
        system_calls: Requests to the system.
    """

    peak_live_bytes: int
    reserved_bytes: int
    allocate_calls: int
    deallocate_calls: int
    system_calls: int


def run_imperatively(
    schedule: Schedule, *, hold_references: bool = False, policy: Policy = DEFAULT_POLICY
) -> Imperative:
    """Simulate a framework that runs one operation after another and allocates each output.

    An output is allocated when its step runs, and freed when its last reference dies, after the
    last step that reads it. Only TIED outputs are written in place; a VIEW shares the bytes of its
    base.

    Args:
        schedule: Values and steps.
        hold_references: Whether the program keeps a reference to every value, so that no value is
            freed; False by default.
        policy: Sizes by which the allocator rounds and splits; PyTorch's by default.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can satisfy.
    """
    apart = problem_of(schedule, in_place=False)
    return run_buffers(apart, schedule.outputs, hold_references=hold_references, policy=policy)


def run_buffers(
    buffers: Buffers,
    kept: Iterable[int],
    *,
    hold_references: bool = False,
    policy: Policy = DEFAULT_POLICY,
) -> Imperative:
    """Run `run_imperatively` on buffers without in-place aliases; `kept` are the outputs."""
    problem, allocator = buffers.problem, CachingAllocator(policy)
    held = set(buffers.of_value) if hold_references else {buffers.of_value[v] for v in kept}
    sizes = problem.size_bytes.tolist()
    starts: defaultdict[int, list[int]] = defaultdict(list)
    stops: defaultdict[int, list[int]] = defaultdict(list)
    spans = zip(problem.start_step.tolist(), problem.stop_step.tolist(), strict=True)
    for buffer, (start, stop) in enumerate(spans):
        starts[start].append(buffer)
        if buffer not in held:
            stops[stop - 1].append(buffer)
    block_of = [-1] * problem.count
    for step in sorted({*starts, *stops}):
        for buffer in starts[step]:
            block_of[buffer] = allocator.allocate(sizes[buffer])
        for buffer in stops[step]:
            allocator.deallocate(block_of[buffer])
    return Imperative(
        allocator.peak_live_bytes,
        allocator.reserved_bytes,
        allocator.allocate_calls,
        allocator.deallocate_calls,
        allocator.system_calls,
    )
