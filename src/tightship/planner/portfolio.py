"""Several placements, the smallest verified one wins."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tightship.planner.bound import lower_bound
from tightship.planner.liveness import NO_BUFFER, Buffers, problem_of
from tightship.planner.place import order
from tightship.planner.place.best_fit import best_fit
from tightship.planner.place.first_fit import first_fit
from tightship.planner.place.greedy_by_size import greedy_by_size
from tightship.planner.plan import Plan, PlanStatus
from tightship.planner.problem import Int64Array, Problem
from tightship.planner.schedule import Schedule
from tightship.planner.verify import verify

Placement = Callable[[Problem], Int64Array]

ORDERS: dict[str, Placement] = {
    "size": order.by_size,
    "size_and_lifetime": order.by_size_and_lifetime,
    "start": order.by_start,
    "area": order.by_area,
    "lifetime": order.by_lifetime,
    "stop": order.by_stop,
}
"""Orders for first fit, by the name that a plan reports."""


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """A plan of a schedule: which buffer each value and scratch has, and where that lies."""

    schedule: Schedule
    buffers: Buffers
    plan: Plan

    def value_offset(self, value: int) -> int | None:
        """Bytes from the arena's base; None for a value outside the arena."""
        return self._offset(self.buffers.of_value[value])

    def scratch_offset(self, step: int) -> int | None:
        """Bytes from the arena's base; None for a step without scratch."""
        return self._offset(self.buffers.of_scratch[step])

    def _offset(self, buffer: int) -> int | None:
        return None if buffer == NO_BUFFER else int(self.plan.offset_bytes[buffer])


def solve(problem: Problem) -> Plan:
    """The smallest plan of several placements; the search ends at the lower bound.

    The same problem gives the same plan. Of equal peaks the earlier placement wins. A plan that
    exceeds `problem.capacity_bytes` is returned all the same and says so in its status.

    Raises:
        InvalidPlanError: A placement is wrong; nothing wrong is ever returned.
    """
    bound = lower_bound(problem)
    best: Plan | None = None
    for strategy, offsets in _placements(problem):
        plan = Plan(problem, offsets, strategy, bound, "feasible")
        if best is None or plan.peak_bytes < best.peak_bytes:
            best = plan
        if best.peak_bytes == bound:
            break
    assert best is not None
    judged = Plan(problem, best.offset_bytes, best.strategy, bound, _status(best))
    verify(judged)
    return judged


def plan_schedule(schedule: Schedule) -> SchedulePlan:
    """The smaller of two plans: with in-place aliases where they help, and without any.

    In-place aliases therefore never raise the peak; of equal peaks the plan with them wins.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can honour.
    """
    plans = []
    for in_place in (True, False):
        buffers = problem_of(schedule, in_place=in_place)
        plans.append(SchedulePlan(schedule, buffers, solve(buffers.problem)))
        if not buffers.in_place:
            break
    return min(plans, key=lambda candidate: candidate.plan.peak_bytes)


def _placements(problem: Problem) -> Iterator[tuple[str, Int64Array]]:
    yield "greedy_by_size", greedy_by_size(problem)
    yield "best_fit", best_fit(problem)
    for name, order_of in ORDERS.items():
        yield f"first_fit:{name}", first_fit(problem, order_of(problem))


def _status(plan: Plan) -> PlanStatus:
    capacity = plan.problem.capacity_bytes
    if capacity is not None and plan.lower_bound_bytes > capacity:
        return "infeasible"
    if not plan.fits:
        return "budget"
    return "optimal" if plan.peak_bytes == plan.lower_bound_bytes else "feasible"
