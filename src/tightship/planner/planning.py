"""Places a schedule: chooses in-place aliases together with the offsets."""

from collections.abc import Callable

from tightship.planner.bound import lower_bound
from tightship.planner.liveness import problem_of
from tightship.planner.portfolio import place
from tightship.planner.schedule import Schedule
from tightship.planner.schedule_plan import Buffers, SchedulePlan
from tightship.public_calls import public_call


@public_call
def place_schedule(schedule: Schedule) -> SchedulePlan:
    """Place the values of a schedule, with the in-place aliases that make the plan smaller.

    The first plan takes all aliases that keep the live bytes low. If its peak is above the lower
    bound of the problem without optional aliases, a second plan without them is made, and the
    smaller one is returned. Aliases therefore never raise the peak. Of equal peaks the plan with
    aliases wins.

    Args:
        schedule: Values and steps.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can satisfy.
    """
    return smaller_plan(
        schedule, problem_of(schedule), lambda: problem_of(schedule, in_place=False)
    )


def smaller_plan(schedule: Schedule, merged: Buffers, apart: Callable[[], Buffers]) -> SchedulePlan:
    """Run `place_schedule` on buffers with aliases and, if needed, on those that `apart` makes."""
    first = _planned(schedule, merged)
    peak = first.plan.peak_bytes
    if not merged.is_merged:
        return first
    buffers = apart()
    # No plan without optional aliases can be smaller than its bound, so planning it would be
    # wasted.
    if peak <= lower_bound(buffers.problem):
        return first
    other = _planned(schedule, buffers)
    return other if other.plan.peak_bytes < peak else first


def _planned(schedule: Schedule, buffers: Buffers) -> SchedulePlan:
    return SchedulePlan(schedule, buffers, place(buffers.problem))
