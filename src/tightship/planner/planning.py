"""The plan of a schedule: in-place aliases are chosen together with the offsets."""

from collections.abc import Callable

from tightship.planner.bound import lower_bound
from tightship.planner.buffers import Buffers
from tightship.planner.liveness import problem_of
from tightship.planner.portfolio import solve
from tightship.planner.schedule import Schedule
from tightship.planner.schedule_plan import SchedulePlan


def plan_schedule(schedule: Schedule) -> SchedulePlan:
    """The smallest plan found over choices of in-place aliases.

    First with all that keep the load low. A plan of those that ends above the lower bound without
    any is held against one without. Aliases therefore never raise the peak; of equal peaks the
    plan with them wins.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can honour.
    """
    return smaller_plan(
        schedule, problem_of(schedule), lambda: problem_of(schedule, in_place=False)
    )


def smaller_plan(schedule: Schedule, merged: Buffers, apart: Callable[[], Buffers]) -> SchedulePlan:
    """`plan_schedule` of buffers that are made: with aliases, and, if need be, without any."""
    first = _planned(schedule, merged)
    peak = first.plan.peak_bytes
    if not merged.is_merged:
        return first
    buffers = apart()
    if peak <= lower_bound(buffers.problem):
        return first
    other = _planned(schedule, buffers)
    return other if other.plan.peak_bytes < peak else first


def _planned(schedule: Schedule, buffers: Buffers) -> SchedulePlan:
    return SchedulePlan(schedule, buffers, solve(buffers.problem))
