"""Bytes that had better not be reused: pairs of buffers with a cost if they share any.

Two buffers that are never live together may share bytes, but the second must then wait for the
first: a synchronisation that the program would not need otherwise. Where the capacity leaves room,
such pairs are kept apart.
"""

from dataclasses import replace

import numpy as np

from tightship._core import reduce_reuse as _reduce_reuse
from tightship.errors import PlanError
from tightship.planner.penalties import ReusePenalties
from tightship.planner.plan import Plan
from tightship.planner.verify_reuse import verified_reuse_cost

MOVES = 20_000
"""Moves of the search, if not told otherwise; about a second for a few hundred buffers."""


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
    cost = verified_reuse_cost(reduced, penalties)
    assert cost <= verified_reuse_cost(plan, penalties)
    return reduced
