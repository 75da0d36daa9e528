"""Chooses a plan for steps that a number of workers run at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tightship.planner.parallel.added_edges import added_edges
from tightship.planner.parallel.concurrency import Concurrency, PlanChoice
from tightship.planner.parallel.dependencies import Edge, dependencies, step_order
from tightship.planner.parallel.longest_path import longest_paths
from tightship.planner.parallel.makespan import makespan
from tightship.planner.parallel.parallel_plan import plan_parallel
from tightship.planner.planning import place_schedule
from tightship.planner.schedule import Schedule
from tightship.planner.schedule_plan import SchedulePlan
from tightship.planner.verify_parallel import verify_parallel

WaitsOf = Callable[[SchedulePlan | None], Sequence[Edge]]
"""Function from a plan, or from None, to waits between steps."""

WINDOWS = (1, 2, 4, 8)
"""Widths of windows to try, in steps for each worker: how far a step may run ahead of the first
that has not ended."""
WINDOW_STEPS_MAX = 2000
"""Length of a schedule up to which windows are tried, each of which takes a plan."""
NEAR = 1.01
"""Factor of the least time within which the plan with fewer bytes is taken."""


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """Plan for several workers, and what it was chosen from."""

    plan: SchedulePlan
    concurrency: Concurrency


@dataclass(frozen=True, slots=True)
class _Candidate:
    plan: SchedulePlan
    edges: tuple[Edge, ...]
    choice: PlanChoice


def plan_for_workers(
    schedule: Schedule,
    workers: int,
    weights: Sequence[int],
    *,
    waits_of: WaitsOf | None = None,
    added_bytes: int | None = None,
    arena_bytes_max: int | None = None,
) -> WorkerPlan:
    """Choose the plan with the shortest simulated time, and of nearly equal ones the smallest.

    Plans for one step after another, with the waits that make them safe, and for any order compete;
    if the latter is larger, also plans for steps within a window of the schedule.

    Args:
        schedule: Values and steps.
        workers: Steps that may run at once, at least 1.
        weights: Operations of each step.
        waits_of: Function from a plan to the waits that the executor keeps to, and from None to
            those that it keeps whatever the plan; by default `dependencies` and `added_edges`.
        added_bytes: Most by which the arena may exceed that for one worker; None for no bound.
        arena_bytes_max: Most that the arena may take if the plan for one worker takes no more; None
            for no bound.

    Raises:
        InvalidPlanError: Verification found the plan wrong, which is a defect.
        PlanError: As from `place_schedule`.
    """
    choosing = _Choosing(schedule, workers, weights, waits_of or partial(_fewest, schedule))
    serial = choosing.candidate("one after another", place_schedule(schedule))
    bound = _bound(serial.choice.arena_bytes, added_bytes, arena_bytes_max)
    found = choosing.candidates(serial)
    fitting = [each for each in found if bound is None or each.choice.arena_bytes <= bound]
    soonest = min(each.choice.operations for each in fitting)
    near = [each for each in fitting if each.choice.operations <= NEAR * soonest]
    best = min(near, key=_price)
    verify_parallel(best.plan, choosing.waits_of(best.plan))
    shown = [found[0], *([] if best in (found[0], found[-1]) else [best]), found[-1]]
    return WorkerPlan(
        best.plan,
        Concurrency(
            workers,
            tuple([each.choice for each in shown]),
            shown.index(best),
            best.edges,
            sum(weights),
            bound,
        ),
    )


def _bound(serial_bytes: int, added_bytes: int | None, most_bytes: int | None) -> int | None:
    """Return the bytes that a plan may have: at least those of the plan for one worker."""
    bounds = [] if added_bytes is None else [serial_bytes + added_bytes]
    if most_bytes is not None:
        bounds.append(max(serial_bytes, most_bytes))
    return min(bounds, default=None)


def _price(candidate: _Candidate) -> tuple[int, int, int]:
    choice = candidate.choice
    return choice.arena_bytes, choice.added_edges, choice.operations


@dataclass(frozen=True, slots=True)
class _Choosing:
    schedule: Schedule
    workers: int
    weights: Sequence[int]
    waits_of: WaitsOf

    def candidates(self, serial: _Candidate) -> list[_Candidate]:
        """Make plans from the one for steps in order to the one for any order."""
        kept = self.waits_of(None)
        free = self.candidate("as soon as they can", plan_parallel(self.schedule, waits=kept))
        found = [serial]
        count = len(self.schedule.steps)
        if free.choice.arena_bytes > serial.choice.arena_bytes and count <= WINDOW_STEPS_MAX:
            for steps in WINDOWS:
                width = steps * self.workers
                if width < count and width > 1:
                    waits = [*kept, *_within(count, width)]
                    plan = plan_parallel(self.schedule, waits=waits)
                    found.append(self.candidate(f"within {width} steps", plan))
        return [*found, free]

    def candidate(self, name: str, plan: SchedulePlan) -> _Candidate:
        order = step_order(self.schedule, sorted(self.waits_of(None)))
        waits = sorted(self.waits_of(plan))
        added = tuple([edge for edge in waits if not order.before(*edge)])
        choice = PlanChoice(
            name,
            plan.plan.peak_bytes,
            len(added),
            int(longest_paths([1] * len(self.weights), waits).longest),
            makespan(self.weights, waits, self.workers),
        )
        return _Candidate(plan, added, choice)


def _fewest(schedule: Schedule, plan: SchedulePlan | None) -> Sequence[Edge]:
    edges = dependencies(schedule)
    if plan is None:
        return edges
    return [*edges, *[(edge.before, edge.after) for edge in added_edges(plan)]]


def _within(count: int, width: int) -> list[Edge]:
    """Have each step wait for those that are `width` or more before it."""
    return [
        (before, after)
        for after in range(width, count)
        for before in range(max(0, after - 2 * width + 1), after - width + 1)
    ]
