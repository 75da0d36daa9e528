"""Tries several placements and returns the smallest, verified."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from threading import Timer

import numpy as np

from tightship._core import StopFlag
from tightship.planner.bound import lower_bound
from tightship.planner.large import LARGE_COUNT, large_placements
from tightship.planner.placements import order
from tightship.planner.placements.in_one_order import (
    best_fit,
    first_fit,
    greedy_by_size,
    lowest_first,
)
from tightship.planner.placements.shared_objects import shared_objects
from tightship.planner.plan import Conflict, Goal, Plan, status_of
from tightship.planner.problem import TOTAL_BYTES_MAX, Int64Array, Problem
from tightship.planner.verify import verify
from tightship.public_calls import public_call

EFFORT: Mapping[Goal, int] = {"fit": 5_000_000_000, "minimize": 200_000_000}
"""Pairs of buffers that `place` compares by default. It gives up on a fit after about ten seconds,
and on a smaller peak after some tenths of a second."""

LARGE_EFFORT = 500_000_000
"""Default effort from `LARGE_COUNT` buffers on, for both goals: a second or two."""

ALWAYS_TRIED = 3
"""Number of placements that are tried before any search, even if the effort is 0."""

GROWTH = 4
"""Factor by which the effort grows from one search to the next."""

OrderOf = Callable[[Problem], Int64Array]

FIRST_FIT_ORDERS: dict[str, OrderOf] = {
    "size_and_lifetime": order.by_size_and_lifetime,
    "size": order.by_size,
    "start": order.by_start,
    "area": order.by_area,
}
"""Orders for `first_fit`, by the name that a plan reports."""

LOWEST_FIRST_ORDERS: dict[str, OrderOf] = {
    "load": order.by_load,
    "load_and_start": order.by_load_and_start,
    "stop": order.by_stop,
    "start": order.by_start,
    "load_and_area": order.by_load_and_area,
    "lifetime": order.by_lifetime,
}
"""Orders for `lowest_first`, by the name that a plan reports."""


@public_call
def place(
    problem: Problem,
    *,
    goal: Goal | None = None,
    effort: int | None = None,
    threads: int = 1,
    stop: StopFlag | None = None,
) -> Plan:
    """Place buffers: find a plan that fits the capacity, or the smallest plan.

    A few placements are tried first, then, below `LARGE_COUNT` buffers, exact search, then the
    other placements, until the goal is reached. The same problem, goal and effort give the same
    plan, on any number of threads. Of equal peaks the earlier placement wins. If no plan within
    `problem.capacity_bytes` is found, the smallest one is returned and its status says so.

    Args:
        problem: n buffers.
        goal: `fit` accepts any plan within the capacity; `minimize` stops at a peak that is proved
            smallest. The default is `fit` if the problem has a capacity, otherwise `minimize`.
        effort: Pairs of buffers to compare, roughly, before the search ends; by default `EFFORT`
            of the goal, or `LARGE_EFFORT`. `ALWAYS_TRIED` placements are tried in any case.
        threads: Threads that may search at once; 1 by default.
        stop: Flag that ends the search, with the best plan so far, when another thread sets it.

    Raises:
        InvalidPlanError: Verification found the placement wrong, which is a defect.
    """
    if goal is None:
        goal = "minimize" if problem.capacity_bytes is None else "fit"
    if effort is None:
        effort = EFFORT[goal] if problem.count < LARGE_COUNT else LARGE_EFFORT
    if problem.constraints is not None:
        from tightship.planner.constrained.plan import constrained_plan  # few problems need it

        constrained = constrained_plan(problem, goal, effort, threads=threads, stop=stop)
        verify(constrained)
        return constrained
    found = _Found(problem, goal, lower_bound(problem))
    placements = _placements(problem, found.target_bytes, effort)
    found.place(islice(placements, ALWAYS_TRIED))
    if problem.count < LARGE_COUNT and not (found.is_done and found.fits):
        found.search(effort, threads, stop)
    found.place(placements)
    plan = found.plan()
    verify(plan)
    return plan


def place_within(problem: Problem, goal: Goal | None, threads: int, limit_s: float) -> Plan:
    """Search with growing effort until the goal is reached or proved out of reach, or time ends.

    Args:
        problem: n buffers, fewer than `LARGE_COUNT`; more have no search that could end.
        goal: As for `place`.
        threads: Threads that search at once.
        limit_s: Seconds after which the search ends with the best plan so far.
    """
    goal = goal or ("minimize" if problem.capacity_bytes is None else "fit")
    stop = StopFlag()
    timer = Timer(limit_s, stop.set)
    timer.daemon = True
    timer.start()
    try:
        effort = EFFORT[goal]
        best = place(problem, goal=goal, effort=effort, threads=threads, stop=stop)
        while not (_is_done(best, goal) or stop.is_set()):
            effort *= GROWTH
            found = place(problem, goal=goal, effort=effort, threads=threads, stop=stop)
            best = min(found, best, key=_rank)
    finally:
        timer.cancel()
    return best


def _is_done(plan: Plan, goal: Goal) -> bool:
    return plan.status in ("optimal", "infeasible") or (goal == "fit" and plan.status == "feasible")


def _rank(plan: Plan) -> tuple[bool, bool, int, int, int]:
    """Rank plans, less is better: proofs, then plans that fit, of low cost, peak and gap."""
    return (
        plan.status not in ("optimal", "infeasible"),
        plan.status == "budget",
        plan.cost,
        plan.peak_bytes,
        -plan.lower_bound_bytes,
    )


class _Found:
    """The smallest offsets so far, the bound that is proved, and the condition to stop."""

    def __init__(self, problem: Problem, goal: Goal, bound_bytes: int) -> None:
        self.problem = problem
        self.goal = goal
        self.bound_bytes = bound_bytes
        self.peak_bytes = 2 * TOTAL_BYTES_MAX  # above any placement, so that the first one is kept
        self.strategy = ""
        self.offset_bytes = np.zeros(0, np.int64)
        self.conflict: Conflict | None = None

    @property
    def target_bytes(self) -> int:
        """The peak at which the search stops."""
        capacity = self.problem.capacity_bytes
        if self.goal == "minimize" or capacity is None:
            return self.bound_bytes
        return max(self.bound_bytes, capacity)

    @property
    def is_done(self) -> bool:
        """Whether the peak has reached the target."""
        return self.peak_bytes <= self.target_bytes

    @property
    def fits(self) -> bool:
        """Whether the offsets stay within the capacity, if there is one."""
        capacity = self.problem.capacity_bytes
        return capacity is None or self.peak_bytes <= capacity

    def place(self, placements: Iterable[tuple[str, Int64Array]]) -> None:
        """Try placements until the target is reached."""
        if not self.is_done:
            for strategy, offset_bytes in placements:
                self.add(strategy, offset_bytes)
                if self.is_done:
                    break

    def add(self, strategy: str, offset_bytes: Int64Array) -> None:
        """Keep a placement if it is smaller."""
        peak = int((offset_bytes + self.problem.size_bytes).max(initial=0))
        if peak < self.peak_bytes:
            self.peak_bytes, self.strategy, self.offset_bytes = peak, strategy, offset_bytes

    def search(self, effort: int, threads: int, stop: StopFlag | None) -> None:
        """Search for the plan that the goal still lacks, or for a conflict if none exists."""
        from tightship.planner.conflict import smallest_conflict  # few problems need them
        from tightship.planner.improve import improve
        from tightship.planner.placements.exact import fit

        problem, capacity = self.problem, self.problem.capacity_bytes
        if capacity is not None and not self.fits:
            found = fit(problem, capacity, effort=effort, threads=threads, stop=stop)
            if found.verdict == "fits":
                self.add("exact", found.offset_bytes)
            elif found.verdict == "infeasible":
                self.bound_bytes = max(self.bound_bytes, found.bound_bytes)
                self.conflict = smallest_conflict(
                    problem, capacity, found.conflict, effort=effort // 4, stop=stop
                )
        if self.goal == "fit" or self.is_done:
            return
        steps = improve(
            problem, self.peak_bytes, self.bound_bytes, effort=effort, threads=threads, stop=stop
        )
        for step in steps:
            self.bound_bytes = step.bound_bytes
            if step.offset_bytes is not None:
                self.add("exact", step.offset_bytes)

    def plan(self) -> Plan:
        """Make a plan of the smallest offsets, with the status that is proved."""
        plan = Plan(
            self.problem,
            self.offset_bytes,
            self.strategy,
            min(self.bound_bytes, self.peak_bytes),
            "feasible",
            conflict=self.conflict,
        )
        return replace(plan, status=status_of(plan))


def _placements(problem: Problem, bound: int, effort: int) -> Iterator[tuple[str, Int64Array]]:
    """Yield placements with the names of their strategies, until the effort is used up."""
    if problem.count >= LARGE_COUNT:
        yield from large_placements(problem, bound, effort)
        return
    left = effort // max(1, problem.count**2)
    for number, (strategy, offsets_of) in enumerate(_single_placements(problem)):
        if number >= ALWAYS_TRIED and left <= 0:
            return
        yield strategy, offsets_of()
        left -= 1


def _single_placements(problem: Problem) -> Iterator[tuple[str, Callable[[], Int64Array]]]:
    """Yield one placement for each strategy, the most promising first."""
    yield "greedy_by_size", partial(greedy_by_size, problem)
    yield "best_fit", partial(best_fit, problem)
    for name, order_of in LOWEST_FIRST_ORDERS.items():
        yield f"lowest_first:{name}", partial(lowest_first, problem, order_of(problem))
    for name, order_of in FIRST_FIT_ORDERS.items():
        yield f"first_fit:{name}", partial(first_fit, problem, order_of(problem))
    yield "shared_objects", partial(shared_objects, problem)
