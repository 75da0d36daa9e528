"""Several placements, the smallest verified one wins."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from tightship.planner.bound import lower_bound
from tightship.planner.large import LARGE_COUNT, large_placements
from tightship.planner.place import order
from tightship.planner.place.best_fit import best_fit
from tightship.planner.place.first_fit import first_fit
from tightship.planner.place.greedy_by_size import greedy_by_size
from tightship.planner.place.lowest_first import lowest_first, promote
from tightship.planner.place.shared_objects import shared_objects
from tightship.planner.plan import Plan, PlanStatus
from tightship.planner.problem import Int64Array, Problem
from tightship.planner.verify import verify

EFFORT = 200_000_000
"""Pairs of buffers that `solve` may look at, if not told otherwise; some tenths of a second."""

ALWAYS_TRIED = 4
"""Placements that are tried whatever the effort."""

ROUNDS_MAX = 400
"""Rounds of one promotion; more of them rarely find anything."""

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
"""Orders for `lowest_first` and `promote`, by the name that a plan reports."""


def solve(problem: Problem, *, effort: int = EFFORT) -> Plan:
    """The smallest plan of several placements; the search ends at the lower bound.

    The same problem and effort give the same plan. Of equal peaks the earlier placement wins. A
    plan that exceeds `problem.capacity_bytes` is returned all the same and says so in its status.

    Args:
        problem: n buffers.
        effort: Pairs of buffers to look at before the search ends; `ALWAYS_TRIED` placements
            are tried in any case.

    Raises:
        InvalidPlanError: A placement is wrong; nothing wrong is ever returned.
    """
    if problem.constraints is not None:
        from tightship.planner.constrained import constrained_plan  # few problems need it

        constrained = constrained_plan(problem, effort)
        verify(constrained)
        return constrained
    bound = lower_bound(problem)
    best: Plan | None = None
    for strategy, offsets in _placements(problem, bound, effort):
        plan = Plan(problem, offsets, strategy, bound, "feasible")
        if best is None or plan.peak_bytes < best.peak_bytes:
            best = plan
        if best.peak_bytes == bound:
            break
    assert best is not None
    judged = replace(best, status=_status(best))
    verify(judged)
    return judged


def _placements(problem: Problem, bound: int, effort: int) -> Iterator[tuple[str, Int64Array]]:
    """Placements with the names of their strategies, as far as the effort goes."""
    if problem.count >= LARGE_COUNT:
        yield from large_placements(problem, bound, effort)
        return
    left = effort // max(1, problem.count**2)
    for number, (strategy, place) in enumerate(_single_placements(problem)):
        if number >= ALWAYS_TRIED and left <= 0:
            return
        yield strategy, place()
        left -= 1
    rounds = min(ROUNDS_MAX, left // len(LOWEST_FIRST_ORDERS))
    if rounds > 0:
        for name, order_of in LOWEST_FIRST_ORDERS.items():
            yield f"promote:{name}", promote(problem, order_of(problem), bound, rounds)


def _single_placements(problem: Problem) -> Iterator[tuple[str, Callable[[], Int64Array]]]:
    """One placement each, the most promising first."""
    yield "greedy_by_size", partial(greedy_by_size, problem)
    yield "best_fit", partial(best_fit, problem)
    yield "shared_objects", partial(shared_objects, problem)
    for name, order_of in LOWEST_FIRST_ORDERS.items():
        yield f"lowest_first:{name}", partial(lowest_first, problem, order_of(problem))
    for name, order_of in FIRST_FIT_ORDERS.items():
        yield f"first_fit:{name}", partial(first_fit, problem, order_of(problem))


def _status(plan: Plan) -> PlanStatus:
    capacity = plan.problem.capacity_bytes
    if capacity is not None and plan.lower_bound_bytes > capacity:
        return "infeasible"
    if not plan.fits:
        return "budget"
    return "optimal" if plan.peak_bytes == plan.lower_bound_bytes else "feasible"
