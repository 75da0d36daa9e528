"""Places items in several orders under all constraints."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tightship._core import place_items
from tightship.errors import InvalidPlanError
from tightship.planner.constrained.items import Items
from tightship.planner.constraints import FREE, Constraints
from tightship.planner.placements import order
from tightship.planner.placements.in_one_order import lowest_first
from tightship.planner.plan import Plan
from tightship.planner.problem import Int64Array, Problem
from tightship.planner.verify import verify_offsets

NO_LIMIT = 2**62

ORDERS = {
    "size_and_lifetime": order.by_size_and_lifetime,
    "load": order.by_load,
    "size": order.by_size,
    "area": order.by_area,
    "start": order.by_start,
    "lifetime": order.by_lifetime,
}
"""Orders of items, by the name that a plan reports as its strategy."""


Score = tuple[int, int, int]
"""Bytes beyond the capacities of all banks, cost, and peak in bytes; smaller is better."""


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A plan, its score, and the items responsible for the score."""

    plan: Plan
    score: Score
    beyond: Int64Array


def best_in_order(problem: Problem, items: Items, target: Score, *, rounds: int) -> Placed:
    """Return the best of several placements in order that satisfy the constraints.

    Items may be pinned to bytes that other items need; the score of such a placement counts as
    beyond all capacities.

    Args:
        problem: n buffers and constraints.
        items: Items of the problem.
        target: A score that no plan improves on; its peak becomes the plan's lower bound.
        rounds: Attempts for each order; before each, responsible items move to the front.
    """
    best: Placed | None = None
    for name, by_order in _orders(items):
        placed = _promoted(problem, items, (name, by_order), target[2], rounds)
        if best is None or placed.score < best.score:
            best = placed
        if best.score == target:
            break
    assert best is not None
    return best


def _orders(items: Items) -> Iterator[tuple[str, Int64Array]]:
    envelopes = items.envelopes()
    for name, order_of in ORDERS.items():
        yield name, order_of(envelopes)
    packed = lowest_first(envelopes, order.by_load(envelopes))
    yield "lowest_first", np.argsort(packed, kind="stable")
    yield "short_lived", order.by_lifetime(envelopes)[::-1].copy()


def _promoted(
    problem: Problem, items: Items, named: tuple[str, Int64Array], bound: int, rounds: int
) -> Placed:
    """Return the best of several rounds; after each, the items responsible move to the front."""
    name, by_order = named
    best: Placed | None = None
    for _ in range(rounds):
        placed = _placed(problem, items, name, by_order, bound)
        if best is None or placed.score < best.score:
            best = placed
        position = 4 * np.arange(items.count)
        # Positions are multiples of 4, so half a position less 1 never ties with another item.
        blamed = np.isin(by_order, placed.beyond)
        position[blamed] = position[blamed] // 2 - 1
        promoted = by_order[np.argsort(position, kind="stable")]
        if not len(placed.beyond) or np.array_equal(promoted, by_order):
            break
        by_order = promoted
    assert best is not None
    return best


def _placed(problem: Problem, items: Items, name: str, by_order: Int64Array, bound: int) -> Placed:
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
    over += 0 if _is_free_of_pins(plan) else NO_LIMIT
    limits = np.minimum(np.array(capacities), bound if len(capacities) == 1 else NO_LIMIT)
    tops = offsets + problem.size_bytes
    too_high = tops > limits[bank[items.of_buffer]]
    cheapest = np.array([costs[index] for index in bank[items.of_buffer]]) > min(costs)
    beyond = np.unique(items.of_buffer[too_high | (cheapest & (problem.size_bytes > 0))])
    return Placed(plan, (over, plan.cost, plan.peak_bytes), beyond)


def bank_capacities(problem: Problem) -> list[int]:
    """Return the capacity of each address space in bytes; `NO_LIMIT` for one without a limit."""
    banks = problem.constraints.banks if problem.constraints else ()
    given = [bank.capacity_bytes for bank in banks] or [problem.capacity_bytes]
    return [NO_LIMIT if capacity is None else capacity for capacity in given]


def _is_free_of_pins(plan: Plan) -> bool:
    """Whether no buffer is pinned to bytes that another buffer has."""
    constraints = plan.problem.constraints
    pinned = constraints.pinned_offset_bytes if constraints else None
    if pinned is None or (pinned == FREE).all():
        return True
    try:
        verify_offsets(plan.problem, plan.offset_bytes, plan.bank)
    except InvalidPlanError:
        return False
    return True
