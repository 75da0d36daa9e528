"""Stores plans as the order in which buffers lie, and decodes them for other sizes.

Offsets hold for one set of sizes, but the order of buffers from bottom to top holds for many.
Buffers stacked in that order make a plan for any sizes, and for the original sizes one that is not
larger.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightship.errors import PlanError
from tightship.planner.bound import lower_bound
from tightship.planner.placements.in_one_order import stacked
from tightship.planner.plan import Plan, status_of
from tightship.planner.portfolio import place
from tightship.planner.problem import Int64Array, Problem
from tightship.planner.verify import verify

TOLERANCE = 1.01
"""Default factor by which a decoded peak may exceed the smallest known."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredOrders:
    """Orders of n buffers from bottom to top.

    Several orders are kept because none suits all sizes: where attention scores outgrow
    activations, for example, other buffers belong at the bottom.

    Attributes:
        orders: Permutations of range(n), int64 of shape (n,).
        names: Names of the n buffers; None if buffers are identified by their indices.
    """

    orders: tuple[Int64Array, ...]
    names: tuple[str, ...] | None = None

    def decode(self, problem: Problem) -> Plan:
        """Return the smallest plan of the orders, or the first that reaches the lower bound.

        The plan is valid for any sizes, alignments and lifetimes, and is verified. Buffers with
        names are identified by them; buffers that the orders do not know lie on top of the others.

        Raises:
            PlanError: The problem has constraints, or has no names and not n buffers.

        Complexity: O(n log n) for each order.
        """
        if problem.constraints is not None:
            raise PlanError(
                "The problem has constraints; stored orders are decoded only for problems without."
            )
        bound = lower_bound(problem)
        best, least = np.zeros(problem.count, np.int64), -1
        for order in self._orders_for(problem):
            offset_bytes = stacked(problem, order)
            peak = int((offset_bytes + problem.size_bytes).max(initial=0))
            if least < 0 or peak < least:
                best, least = offset_bytes, peak
            if least <= bound:
                break
        plan = Plan(problem, best, "stored_order", bound, "feasible")
        plan = replace(plan, status=status_of(plan))
        verify(plan)
        return plan

    def _orders_for(self, problem: Problem) -> Iterator[Int64Array]:
        if self.names is None or problem.names is None or self.names == problem.names:
            for order in self.orders:
                if len(order) != problem.count:
                    raise PlanError(
                        f"The order has {len(order)} buffers; the problem has {problem.count}. "
                        "Name the buffers of both, or plan the problem again."
                    )
                yield order
            return
        index_of = {name: index for index, name in enumerate(self.names)}
        unknown = len(self.names)
        known = np.array([index_of.get(name, unknown) for name in problem.names], np.int64)
        for order in self.orders:
            # The last entry ranks buffers with unknown names behind all others.
            rank = np.full(unknown + 1, unknown)
            rank[order] = np.arange(unknown)
            yield np.argsort(rank[known], kind="stable").astype(np.int64)


def order_of(plan: Plan) -> Int64Array:
    """Return the buffers of a plan by increasing offset; of equal offsets the earliest first."""
    return np.lexsort((plan.problem.start_step, plan.offset_bytes)).astype(np.int64)


def stored_orders(problems: Iterable[Problem], tolerance: float = TOLERANCE) -> StoredOrders:
    """Collect orders that decode each problem to its smallest plan, within a tolerance.

    Problems are taken one after another. A problem that the orders so far do not suit is planned,
    and its order is added. Sizes between the samples are decoded the better, the denser the
    samples are.

    Args:
        problems: The same buffers with different sizes, as samples of sizes to come; named buffers
            have the same names in all problems.
        tolerance: Factor by which a decoded peak may exceed the smallest known; at least 1.

    Raises:
        PlanError: There is no problem, or problems differ in their buffers or have constraints.
    """
    stored: StoredOrders | None = None
    for problem in problems:
        if stored is None:
            names = None if problem.names is None else tuple(problem.names)
            stored = StoredOrders((order_of(place(problem)),), names)
            continue
        if not _same(problem.names, stored.names):
            raise PlanError(
                "The problems have buffers of different names; orders need the same names in all."
            )
        decoded = stored.decode(problem)
        if decoded.peak_bytes <= tolerance * decoded.lower_bound_bytes:
            continue
        plan = place(problem)
        if decoded.peak_bytes > tolerance * plan.peak_bytes:
            stored = replace(stored, orders=(*stored.orders, order_of(plan)))
    if stored is None:
        raise PlanError("No problem was given; orders need at least one.")
    return stored


def _same(names: Sequence[str] | None, others: tuple[str, ...] | None) -> bool:
    return others is None if names is None else tuple(names) == others
