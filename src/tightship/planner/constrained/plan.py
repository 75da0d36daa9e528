"""Plans problems with constraints."""

from dataclasses import replace

from tightship._core import StopFlag
from tightship.planner.bound import lower_bound
from tightship.planner.constrained.bank_cost import least_cost
from tightship.planner.constrained.items import items_of
from tightship.planner.constrained.orders import ORDERS, best_in_order
from tightship.planner.constrained.search import Searched, SearchEffort, find_best, find_fit
from tightship.planner.constraints import Constraints
from tightship.planner.large import LARGE_COUNT
from tightship.planner.plan import Goal, Plan, PlanStatus
from tightship.planner.problem import Problem

ROUNDS_MAX = 200
"""Most rounds of promotion for one order."""

PROMOTION_EFFORT_MAX = 200_000_000
"""Pairs of items that all promotions may compare; a larger limit improves few plans."""

PAIRS_PER_ITEM = 256
"""Estimated effort of placing one item, in pairs of items compared."""


def constrained_plan(
    problem: Problem,
    goal: Goal,
    effort: int,
    *,
    threads: int = 1,
    stop: StopFlag | None = None,
) -> Plan:
    """Plan a problem with constraints: place items in order, then search.

    Of two plans the better one exceeds the capacities less, then costs less, then has the smaller
    peak. A plan is `optimal` if its cost and its peak are proved to be the least possible. The
    caller has to verify the plan, because pinned buffers may collide in any placement.

    Args:
        problem: n buffers and constraints.
        goal: `fit` accepts the first plan within the capacities; `minimize` looks for the best
            plan.
        effort: Pairs of items that the search may compare, and promotions again, up to
            `PROMOTION_EFFORT_MAX`; one placement by each order is made in any case.
        threads: Threads that may search at once; 1 by default.
        stop: Flag that ends the search when another thread sets it.
    """
    items = items_of(problem)
    constraints = problem.constraints or Constraints()
    target = (0, least_cost(constraints, items), lower_bound(problem))
    first = best_in_order(problem, items, target, rounds=1)
    found = Searched(first.plan, first.score[0] == 0, target[1])
    if problem.count < LARGE_COUNT:
        found = _searched(found, goal, SearchEffort(effort, threads, stop))
    if found.plan.conflict is None and not _is_done(found, goal):
        # Without a proof or a fit from the search, many promoted placements may still be better.
        pairs = min(effort, PROMOTION_EFFORT_MAX)
        turns = pairs // (PAIRS_PER_ITEM * max(1, items.count)) // len(ORDERS)
        target = (0, found.cost_bound, found.plan.lower_bound_bytes)
        placed = best_in_order(problem, items, target, rounds=max(1, min(ROUNDS_MAX, turns)))
        reached = (0 if found.fits else first.score[0], found.plan.cost, found.plan.peak_bytes)
        if placed.score < reached:
            found = Searched(placed.plan, placed.score[0] == 0, found.cost_bound)
    return replace(found.plan, status=_status(found))


def _searched(begun: Searched, goal: Goal, effort: SearchEffort) -> Searched:
    found = begun if begun.fits else find_fit(begun, effort)
    return find_best(found, effort) if found.fits and not _is_done(found, goal) else found


def _is_done(found: Searched, goal: Goal) -> bool:
    return found.fits and (goal == "fit" or _status(found) == "optimal")


def _status(found: Searched) -> PlanStatus:
    plan = found.plan
    capacity = plan.problem.capacity_bytes
    if plan.conflict or (capacity is not None and plan.lower_bound_bytes > capacity):
        return "infeasible"
    if not found.fits:
        return "budget"
    is_best = (plan.cost, plan.peak_bytes) == (found.cost_bound, plan.lower_bound_bytes)
    return "optimal" if is_best else "feasible"
