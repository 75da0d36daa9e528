"""Compares the arena bytes of several planning strategies."""

from tightship.planner.liveness import problem_of
from tightship.planner.placements.in_one_order import best_fit, greedy_by_size
from tightship.planner.placements.shared_objects import shared_objects
from tightship.planner.plan import Plan
from tightship.planner.planning import place_schedule
from tightship.planner.problem import Int64Array, Problem
from tightship.planner.schedule import Schedule
from tightship.planner.scheme.reference_count import recycled_bytes
from tightship.planner.verify import verify_offsets
from tightship.public_calls import public_call


@public_call
def compare(schedule: Schedule) -> dict[str, int]:
    """Compute the arena bytes of a schedule by strategy.

    `none` gives every buffer bytes of its own and `in_place` only takes aliases. `share` recycles
    whole blocks, as in the memory note. `greedy_by_size` and `best_fit` are single placements with
    in-place aliases. `planned` is the result of `place_schedule`, and `lower_bound` is the size
    below which no plan with these in-place choices exists.

    Args:
        schedule: Values and steps.

    Returns:
        Bytes by the name of the strategy.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can satisfy.
    """
    apart = problem_of(schedule, in_place=False).problem
    merged = problem_of(schedule, in_place=True).problem
    planned = place_schedule(schedule).plan
    return {
        "none": recycled_bytes(apart, 0),
        "in_place": recycled_bytes(merged, 0),
        "share": _peak(apart, shared_objects(apart)),
        "in_place+share": _peak(merged, shared_objects(merged)),
        "greedy_by_size": _peak(merged, greedy_by_size(merged)),
        "best_fit": _peak(merged, best_fit(merged)),
        "planned": planned.peak_bytes,
        "lower_bound": planned.lower_bound_bytes,
    }


def _peak(problem: Problem, offsets: Int64Array) -> int:
    verify_offsets(problem, offsets)
    return Plan(problem, offsets, "", 0, "feasible").peak_bytes
