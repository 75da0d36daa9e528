"""Bytes that had better not be reused: pairs of buffers with a cost if they share any.

Two buffers that are never live together may share bytes, but the second must then wait for the
first: a synchronisation that the program would not need otherwise. Where the capacity leaves room,
such pairs are kept apart.
"""

from dataclasses import dataclass, replace

import numpy as np

from tightship._core import reduce_reuse as _reduce_reuse
from tightship.errors import PlanError
from tightship.planner.plan import Plan
from tightship.planner.problem import Int64Array, Problem
from tightship.planner.verify import verify

MOVES = 20_000
"""Moves of the search, if not told otherwise; about a second for a few hundred buffers."""

COST_MAX = 2**40


@dataclass(frozen=True, slots=True, eq=False)
class ReusePenalties:
    """m pairs of buffers and what it costs if they share a byte: rows of first, second and cost.

    `rows` is int64 of shape (m, 3), copied and made read-only.

    Raises:
        PlanError: Another type or shape, a pair of one buffer, or a cost outside [0, 2**40].
    """

    rows: Int64Array

    def __post_init__(self) -> None:
        if self.rows.dtype != np.int64 or self.rows.ndim != 2 or self.rows.shape[1] != 3:
            raise PlanError(
                f"Penalties are {self.rows.dtype} of shape {self.rows.shape}; they must be int64 "
                "of shape (m, 3)."
            )
        rows = np.array(self.rows)
        rows.flags.writeable = False
        object.__setattr__(self, "rows", rows)
        first, second, cost = rows.T
        for index in np.flatnonzero((first == second) | (cost < 0) | (cost > COST_MAX))[:1]:
            raise PlanError(
                f"Penalty {index} is of buffers {first[index]} and {second[index]} and costs "
                f"{cost[index]}; it must be of two, and cost from 0 to {COST_MAX}."
            )

    def cost(self, problem: Problem, offset_bytes: Int64Array) -> int:
        """The sum over the pairs that share a byte."""
        first, second, cost = self.rows.T
        tops = offset_bytes + problem.size_bytes
        bottom = np.maximum(offset_bytes[first], offset_bytes[second])
        return int(cost[bottom < np.minimum(tops[first], tops[second])].sum())


def reduce_reuse(plan: Plan, penalties: ReusePenalties, *, moves: int = MOVES) -> Plan:
    """A plan within the same capacity whose costly pairs share bytes less.

    The same plan, penalties and moves give the same result, which never costs more.

    Args:
        plan: A plan that fits its capacity.
        penalties: Pairs of its buffers.
        moves: How often some buffers are taken out and put elsewhere.

    Raises:
        PlanError: The plan has no capacity, does not fit it or has constraints, or a penalty names
            a buffer that there is not.

    Source: Kirkpatrick, Gelatt and Vecchi, "Optimization by Simulated Annealing", 1983, over moves
    that ruin and recreate.
    """
    problem = plan.problem
    if problem.capacity_bytes is None or not plan.fits or problem.constraints is not None:
        raise PlanError(
            "Reuse is reduced within a capacity: the plan must have one, fit it, and be without "
            "constraints."
        )
    pairs = penalties.rows[:, :2]
    for index in np.flatnonzero(((pairs < 0) | (pairs >= problem.count)).any(axis=1))[:1]:
        raise PlanError(
            f"Penalty {index} is of buffers {pairs[index, 0]} and {pairs[index, 1]}; there are "
            f"{problem.count}."
        )
    offsets = _reduce_reuse(
        problem.columns(), penalties.rows, problem.capacity_bytes, plan.offset_bytes, moves
    )
    reduced = replace(
        plan, offset_bytes=offsets, strategy=f"{plan.strategy}+reduce_reuse", status="feasible"
    )
    verify(reduced)
    return reduced
