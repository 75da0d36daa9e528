"""Plans of problems with constraints."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tightship._core import place_items
from tightship.planner.bound import lower_bound
from tightship.planner.constraints import Constraints
from tightship.planner.items import Items, items_of
from tightship.planner.place import order
from tightship.planner.place.lowest_first import lowest_first
from tightship.planner.plan import Plan, PlanStatus
from tightship.planner.problem import Int64Array, Problem

ROUNDS_MAX = 200
"""Rounds of one promotion."""

PAIRS_PER_ITEM = 256
"""What placing one item takes, in pairs of items looked at."""

NO_LIMIT = 2**62

ORDERS = {
    "size_and_lifetime": order.by_size_and_lifetime,
    "load": order.by_load,
    "size": order.by_size,
    "area": order.by_area,
    "start": order.by_start,
    "lifetime": order.by_lifetime,
}
"""Orders of items, by the name that a plan reports."""


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    plan: Plan
    score: tuple[int, int, int]  # bytes beyond the banks' capacities, cost, peak
    beyond: Int64Array  # items to blame


def constrained_plan(problem: Problem, effort: int) -> Plan:
    """The best of several placements in order that honour all constraints.

    Better is first what exceeds the capacities least, then what costs least, then the smaller
    peak; a plan is `optimal` if it costs as little and is as small as is proved to be possible.

    Args:
        problem: n buffers and constraints.
        effort: Pairs of items to look at; a placement by each order is made in any case.

    The plan is to be verified: items may be pinned to bytes that are taken.
    """
    items = items_of(problem)
    bound = lower_bound(problem)
    left = effort // (PAIRS_PER_ITEM * max(1, items.count))
    rounds = max(1, min(ROUNDS_MAX, left // len(ORDERS)))
    target = (0, _least_cost(problem, items), bound)
    best: _Placed | None = None
    for name, by_order in _orders(items):
        placed = _promoted(problem, items, (name, by_order), bound, rounds)
        if best is None or placed.score < best.score:
            best = placed
        if best.score == target:
            break
    assert best is not None
    return replace(best.plan, status=_status(best, target))


def _status(placed: _Placed, target: tuple[int, int, int]) -> PlanStatus:
    capacity = placed.plan.problem.capacity_bytes
    if capacity is not None and placed.plan.lower_bound_bytes > capacity:
        return "infeasible"
    if not placed.plan.fits:
        return "budget"
    return "optimal" if placed.score == target else "feasible"


def _least_cost(problem: Problem, items: Items) -> int:
    """What the cheapest bank allowed for each buffer would charge, had it room for all."""
    assert problem.constraints is not None
    costs = [bank.cost_per_byte for bank in problem.constraints.banks]
    allowed = items.columns[3][items.of_buffer]
    charged = 0
    for index in np.argsort(costs, kind="stable").tolist():
        here = allowed >> index & 1 == 1
        charged += int(problem.size_bytes[here].sum()) * costs[index]
        allowed = np.where(here, 0, allowed)
    return charged


def _orders(items: Items) -> Iterator[tuple[str, Int64Array]]:
    envelopes = items.envelopes()
    for name, order_of in ORDERS.items():
        yield name, order_of(envelopes)
    packed = lowest_first(envelopes, order.by_load(envelopes))
    yield "lowest_first", np.argsort(packed, kind="stable")
    yield "short_lived", order.by_lifetime(envelopes)[::-1].copy()


def _promoted(
    problem: Problem, items: Items, named: tuple[str, Int64Array], bound: int, rounds: int
) -> _Placed:
    """The best of several rounds; after each, what it is blamed for moves to the front."""
    name, by_order = named
    best: _Placed | None = None
    for _ in range(rounds):
        placed = _placed(problem, items, name, by_order, bound)
        if best is None or placed.score < best.score:
            best = placed
        position = 4 * np.arange(items.count)
        blamed = np.isin(by_order, placed.beyond)
        position[blamed] = position[blamed] // 2 - 1
        promoted = by_order[np.argsort(position, kind="stable")]
        if not len(placed.beyond) or np.array_equal(promoted, by_order):
            break
        by_order = promoted
    assert best is not None
    return best


def _placed(problem: Problem, items: Items, name: str, by_order: Int64Array, bound: int) -> _Placed:
    constraints = problem.constraints or Constraints()
    capacities = bank_capacities(problem)
    costs = [bank.cost_per_byte for bank in constraints.banks] or [0]
    obstacles = [
        (place.bank, place.start_step, place.stop_step, place.start_byte, place.stop_byte)
        for place in constraints.forbidden
    ]
    base, bank = place_items(
        items.rectangles,
        items.columns,
        np.array(obstacles, np.int64).reshape(-1, 5),
        np.array([min(capacity, NO_LIMIT) for capacity in capacities], np.int64),
        np.argsort(costs, kind="stable").astype(np.int64),
        by_order,
    )
    offsets = base[items.of_buffer] + items.offset_bytes
    banks = bank[items.of_buffer] if constraints.banks else None
    plan = Plan(problem, offsets, name, bound, "feasible", banks)
    peaks = plan.bank_peak_bytes
    over = sum(max(0, top - limit) for top, limit in zip(peaks, capacities, strict=True))
    limits = np.minimum(np.array(capacities), bound if len(capacities) == 1 else NO_LIMIT)
    tops = offsets + problem.size_bytes
    too_high = tops > limits[bank[items.of_buffer]]
    cheapest = np.array([costs[index] for index in bank[items.of_buffer]]) > min(costs)
    beyond = np.unique(items.of_buffer[too_high | (cheapest & (problem.size_bytes > 0))])
    return _Placed(plan, (over, plan.cost, plan.peak_bytes), beyond)


def bank_capacities(problem: Problem) -> list[int]:
    """The capacity of each address space in bytes; `NO_LIMIT` where it has none."""
    banks = problem.constraints.banks if problem.constraints else ()
    given = [bank.capacity_bytes for bank in banks] or [problem.capacity_bytes]
    return [NO_LIMIT if capacity is None else capacity for capacity in given]
