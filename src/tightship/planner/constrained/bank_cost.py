"""Bounds from below the cost that banks charge."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.planner.constrained.items import Items
from tightship.planner.constraints import Constraints

ROUNDS = 60
"""Rounds in which prices are adjusted."""

GRID = 16
"""Prices are multiples of one part in `GRID` of a cost, so that integers give an exact bound."""

NOWHERE = 2**200
"""Price of a bank that an item may not use; larger than any real price."""

Float64Array = NDArray[np.float64]


def least_cost(constraints: Constraints, items: Items) -> int:
    """Compute a cost below which no plan exists.

    Each byte of a bank has a price in each step. The items pay at least the price of the bank that
    is cheapest for each of them, and the capacities earn their price: payment less earnings is a
    lower bound for any prices (Lagrangian relaxation of the capacities). Prices rise where a bank
    is too full and fall where it is not. The best prices give the bound of the fractional problem,
    in which an item may be split over several banks and only live bytes count.

    Args:
        constraints: Constraints with banks; without banks the cost is 0.
        items: Items of the problem.

    Returns:
        The bound, in the unit of the banks' `cost_per_byte`.

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
        # A round that does not improve the bound overshot, so the following steps are shorter.
        tallest *= 1.0 if bound > best else 0.8
        best = max(best, bound)
    return best


class _Market:
    """Items, the banks that each may use, and the cost of each item in each bank."""

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
        # An item that fits no bank would pay `NOWHERE`; allowing all banks keeps the bound finite.
        self.is_allowed[:, ~self.is_allowed.any(axis=0)] = True

    def excess(self, prices: Float64Array) -> Float64Array:
        """Return live bytes above capacity by bank and step, each item in its cheapest bank."""
        chosen = self._paid(prices).argmin(axis=0)[self.item]
        change = np.zeros((len(self.cost), self.step_count + 1))
        np.add.at(change, (chosen, self.begin), self.height)
        np.subtract.at(change, (chosen, self.end), self.height)
        load = np.cumsum(change, axis=1)[:, :-1]
        excess: Float64Array = load - self.capacity[:, None]
        excess[(prices == 0) & (excess < 0)] = 0
        return excess

    def bound(self, prices: Float64Array) -> int:
        """Return the items' least payment less the capacities' earnings, exactly, rounded up."""
        exact = np.rint(prices * GRID).astype(np.int64).astype(object)
        paid = self._paid(exact, GRID).min(axis=0).sum()
        earned = (exact.sum(axis=1) * self.capacity.astype(object)).sum()
        return -int((earned - paid) // GRID)

    def _paid(self, prices: NDArray[Any], grid: int = 1) -> NDArray[Any]:
        """Return the price of each item in each bank, times `grid`; shape (banks, m)."""
        before = np.zeros((len(self.cost), self.step_count + 1), prices.dtype)
        before[:, 1:] = np.cumsum(prices, axis=1)
        paid = np.array([self.charge.astype(prices.dtype) * (cost * grid) for cost in self.cost])
        for bank, sums in enumerate(before):
            np.add.at(paid[bank], self.item, self.height * (sums[self.end] - sums[self.begin]))
        paid[~self.is_allowed] = NOWHERE
        return paid
