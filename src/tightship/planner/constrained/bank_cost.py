"""What banks charge at the least."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.planner.constrained.items import Items
from tightship.planner.constraints import Constraints

ROUNDS = 60
"""Rounds of prices."""

GRID = 16
"""Prices are multiples of so many parts of a cost, so that the bound is exact."""

NOWHERE = 2**200
"""What an item pays in a bank that it may not lie in."""

Float64Array = NDArray[np.float64]


def least_cost(constraints: Constraints, items: Items) -> int:
    """A cost below which no plan is.

    Each byte of a bank has a price in each step, which its load pays and its capacity earns: what
    the items pay at least, each in the bank that is cheapest for it, less what the capacities
    earn, is a lower bound for any prices. Prices go up where a bank is too full and down where it
    is not. (The best prices give the bound of the fractional problem, in which an item may lie in
    several banks and only loads count.)

    Args:
        constraints: With banks, or without, which cost nothing.
        items: Of the problem.

    Complexity: O(rounds x banks x rectangles).
    Source: Held, Wolfe, Crowder, "Validation of Subgradient Optimization", 1974.
    """
    if not constraints.banks or not items.count:
        return 0
    market = _Market(constraints, items)
    most = int(items.columns[5].sum()) * max(market.cost)
    prices = np.zeros((len(constraints.banks), market.step_count))
    best = market.bound(prices)
    tallest = 1.0
    for _ in range(ROUNDS):
        excess = market.excess(prices)
        norm = float((excess * excess).sum())
        if norm == 0:
            break
        prices = np.maximum(prices + tallest * (most - best) / norm * excess, 0)
        bound = market.bound(prices)
        tallest *= 1.0 if bound > best else 0.8
        best = max(best, bound)
    return best


class _Market:
    """Items, the banks that each may lie in, and what they pay there."""

    def __init__(self, constraints: Constraints, items: Items) -> None:
        rows = items.rectangles
        steps = np.unique(rows[:, 1])
        self.step_count = len(steps)
        self.item, bottom, top = rows[:, 0], rows[:, 3], rows[:, 4]
        self.begin = np.searchsorted(steps, rows[:, 1])
        self.end = np.searchsorted(steps, rows[:, 2])
        self.height = top - bottom
        _, _, _, allowed, end, self.charge = items.columns
        capacities = [bank.capacity_bytes for bank in constraints.banks]
        largest = int(self.height.sum())
        self.capacity = np.array(
            [largest if limit is None else min(limit, largest) for limit in capacities], np.int64
        )
        self.cost = [bank.cost_per_byte for bank in constraints.banks]
        self.is_allowed = np.array(
            [
                (allowed >> bank & 1 == 1) & (True if limit is None else end <= limit)
                for bank, limit in enumerate(capacities)
            ]
        )
        self.is_allowed[:, ~self.is_allowed.any(axis=0)] = True

    def excess(self, prices: Float64Array) -> Float64Array:
        """By how much each bank is too full in each step, if each item lies where it pays least."""
        chosen = self._paid(prices).argmin(axis=0)[self.item]
        change = np.zeros((len(self.cost), self.step_count + 1))
        np.add.at(change, (chosen, self.begin), self.height)
        np.subtract.at(change, (chosen, self.end), self.height)
        load = np.cumsum(change, axis=1)[:, :-1]
        excess: Float64Array = load - self.capacity[:, None]
        excess[(prices == 0) & (excess < 0)] = 0
        return excess

    def bound(self, prices: Float64Array) -> int:
        """What the items pay at least less what the capacities earn, exactly, rounded up."""
        exact = np.rint(prices * GRID).astype(np.int64).astype(object)
        paid = self._paid(exact, GRID).min(axis=0).sum()
        earned = (exact.sum(axis=1) * self.capacity.astype(object)).sum()
        return -int((earned - paid) // GRID)

    def _paid(self, prices: NDArray[Any], grid: int = 1) -> NDArray[Any]:
        """What each item would pay in each bank, times `grid`; shape (banks, m)."""
        before = np.zeros((len(self.cost), self.step_count + 1), prices.dtype)
        before[:, 1:] = np.cumsum(prices, axis=1)
        paid = np.array([self.charge.astype(prices.dtype) * (cost * grid) for cost in self.cost])
        for bank, sums in enumerate(before):
            np.add.at(paid[bank], self.item, self.height * (sums[self.end] - sums[self.begin]))
        paid[~self.is_allowed] = NOWHERE
        return paid
