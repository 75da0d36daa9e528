"""Plans kept as the order in which their buffers lie, decoded again for other sizes.

Offsets hold for one set of sizes. What lies below what holds for many: buffers stacked in that
order make a plan for any sizes, and for the sizes they come from one that is no larger.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightship.errors import PlanError
from tightship.planner.bound import lower_bound
from tightship.planner.place.stacked import stacked
from tightship.planner.plan import Plan, status_of
from tightship.planner.portfolio import solve
from tightship.planner.problem import Int64Array, Problem
from tightship.planner.verify import verify

TOLERANCE = 1.01
"""Decoded peaks may be so many times the smallest known."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredOrders:
    """Orders of n buffers, each int64 of shape (n,), what lies lowest first.

    A few, because no single one suits all sizes: where attention scores outgrow activations, other
    buffers belong at the bottom.

    Attributes:
        orders: Permutations of range(n).
        names: Of the n buffers; None where a problem's buffers are the same by their indices.
    """

    orders: tuple[Int64Array, ...]
    names: tuple[str, ...] | None = None

    def decode(self, problem: Problem) -> Plan:
        """The smallest plan among the orders; the first that reaches the lower bound.

        Valid for whatever sizes, alignments and lifetimes; verified. Buffers with names are found
        by them: those that the orders do not know lie on top of the others.

        Raises:
            PlanError: The problem has constraints, or other than n buffers without names.

        Complexity: O(n log n) for each order.
        """
        if problem.constraints is not None:
            raise PlanError(
                "The problem has constraints; orders are decoded for buffers that may lie anywhere."
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
                        f"The order is of {len(order)} buffers; the problem has {problem.count}. "
                        "Give the buffers of both names, or plan the problem anew."
                    )
                yield order
            return
        index_of = {name: index for index, name in enumerate(self.names)}
        unknown = len(self.names)
        known = np.array([index_of.get(name, unknown) for name in problem.names], np.int64)
        for order in self.orders:
            rank = np.full(unknown + 1, unknown)
            rank[order] = np.arange(unknown)
            yield np.argsort(rank[known], kind="stable").astype(np.int64)


def order_of(plan: Plan) -> Int64Array:
    """The buffers of a plan from the arena's base upwards; of one offset the earliest first."""
    return np.lexsort((plan.problem.start_step, plan.offset_bytes)).astype(np.int64)


def stored_orders(problems: Iterable[Problem], tolerance: float = TOLERANCE) -> StoredOrders:
    """Orders that decode each problem to its smallest plan, or nearly.

    Problems are taken one after another; one that the orders so far do not suit is planned anew and
    adds its own. Between the sizes given others are decoded as well as the samples are dense.

    Args:
        problems: The same buffers with different sizes, samples of those to come; those with names
            are called alike in all.
        tolerance: A decoded peak may be so many times the smallest known; at least 1.

    Raises:
        PlanError: There are no problems, they are not of the same buffers, or have constraints.
    """
    stored: StoredOrders | None = None
    for problem in problems:
        if stored is None:
            names = None if problem.names is None else tuple(problem.names)
            stored = StoredOrders((order_of(solve(problem)),), names)
            continue
        if not _same(problem.names, stored.names):
            raise PlanError("The problems have buffers of other names; orders are of one set.")
        decoded = stored.decode(problem)
        if decoded.peak_bytes <= tolerance * decoded.lower_bound_bytes:
            continue
        plan = solve(problem)
        if decoded.peak_bytes > tolerance * plan.peak_bytes:
            stored = replace(stored, orders=(*stored.orders, order_of(plan)))
    if stored is None:
        raise PlanError("No problem was given; orders are taken from the plan of at least one.")
    return stored


def _same(names: Sequence[str] | None, others: tuple[str, ...] | None) -> bool:
    return others is None if names is None else tuple(names) == others
