"""Improves a plan of a problem with constraints by search, and proves bounds."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tightship._core import StopFlag
from tightship.planner.conflict import smallest_conflict
from tightship.planner.narrowing import Tried, narrow
from tightship.planner.placements.exact_items import ItemFit, ItemSearch, Within
from tightship.planner.plan import Plan

CONFLICT_SHARE = 4
"""Finding the smallest conflict may take one part in `CONFLICT_SHARE` of the effort."""


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """A plan, whether it is valid within the capacities, and a lower bound on the cost.

    No plan of cost `cost_bound` has a smaller peak than the plan's `lower_bound_bytes`. A plan with
    a conflict proves that no plan fits the capacities.
    """

    plan: Plan
    fits: bool
    cost_bound: int


@dataclass(slots=True)
class SearchEffort:
    """Effort that is left, in pairs of items to compare, with threads and a stop flag."""

    left: int
    threads: int = 1
    stop: StopFlag | None = None

    def fit(self, search: ItemSearch, within: Within, effort: int | None = None) -> ItemFit:
        """Ask the search one question and subtract its effort from the effort that is left."""
        effort = self.left if effort is None else min(effort, self.left)
        found = search.fit(within, effort=effort, threads=self.threads, stop=self.stop)
        self.left = max(0, self.left - found.effort)
        return found


def find_fit(begun: Searched, effort: SearchEffort) -> Searched:
    """Find a plan within the capacities, or a conflict if no such plan exists."""
    problem = begun.plan.problem
    search = ItemSearch(problem)
    capacity = problem.capacity_bytes
    whole = effort.left
    found = effort.fit(search, Within(peak_bytes=capacity))
    if found.verdict == "fits":
        return Searched(_replaced(begun.plan, found), fits=True, cost_bound=begun.cost_bound)
    if found.verdict == "open":
        return begun
    conflict = smallest_conflict(
        problem, capacity, found.conflict, effort=whole // CONFLICT_SHARE, stop=effort.stop
    )
    bound = begun.plan.lower_bound_bytes
    if capacity is not None:
        unit = search.unit_bytes
        # Peaks are multiples of the unit, so the next possible one lies above the capacity.
        bound = max(bound, capacity // unit * unit + unit)
    plan = replace(begun.plan, conflict=conflict, lower_bound_bytes=bound)
    return replace(begun, plan=plan)


def find_best(begun: Searched, effort: SearchEffort) -> Searched:
    """Find the cheapest plan and, of those, the smallest, with lower bounds on cost and peak.

    Args:
        begun: A plan within the capacities.
        effort: Effort that all questions may take together.
    """
    search = ItemSearch(begun.plan.problem)
    best, cost_bound = begun.plan, begun.cost_bound

    def ask(within: Within, share: int) -> ItemFit:
        return effort.fit(search, within, share)

    def tried(found: ItemFit, target: int, number_of: Callable[[Plan], int]) -> Tried[Plan]:
        if found.verdict == "fits":
            plan = _replaced(best, found)
            return Tried(plan, number_of(plan), found.effort)
        unit = search.unit_bytes
        is_proved = found.verdict == "infeasible"
        return Tried(None, target // unit * unit + unit if is_proved else None, found.effort)

    def try_cost(target: int, share: int) -> Tried[Plan]:
        return tried(ask(Within(target), share), target, lambda plan: plan.cost)

    def try_peak(target: int, share: int) -> Tried[Plan]:
        cost = None if best.bank is None else best.cost
        return tried(ask(Within(cost, target), share), target, lambda plan: plan.peak_bytes)

    # Cost comes before peak in a score: only plans of the best cost are searched for a lower peak.
    half, stop = effort.left // 2, effort.stop
    for cheaper in narrow(try_cost, best.cost, cost_bound, effort=half, stop=stop):
        best, cost_bound = cheaper.found or best, cheaper.bound
    bound = best.lower_bound_bytes
    for smaller in narrow(try_peak, best.peak_bytes, bound, effort=effort.left, stop=stop):
        best, bound = smaller.found or best, smaller.bound
    return Searched(replace(best, lower_bound_bytes=bound), fits=True, cost_bound=cost_bound)


def _replaced(plan: Plan, found: ItemFit) -> Plan:
    bank = None if plan.bank is None else found.bank
    return replace(plan, offset_bytes=found.offset_bytes, bank=bank, strategy="exact")
