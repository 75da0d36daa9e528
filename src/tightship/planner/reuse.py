"""Reduces reuse that costs: keeps pairs of buffers with a penalty apart.

Two buffers that are never live together may share bytes, but then the second must wait for the
first, a synchronization that the program would not need otherwise. Where the capacity leaves room,
such pairs are kept apart.
"""

from dataclasses import replace

import numpy as np

from tightship._core import reduce_reuse as _reduce_reuse
from tightship.errors import PlanError
from tightship.planner.penalties import ReusePenalties
from tightship.planner.plan import Plan
from tightship.planner.verify_reuse import verified_reuse_cost
from tightship.public_calls import public_call

MOVES = 20_000
"""Default number of moves of the search; about a second for a few hundred buffers."""


@public_call
def reduce_reuse(plan: Plan, penalties: ReusePenalties, *, moves: int = MOVES) -> Plan:
    """Find a plan within the same capacity in which fewer penalized pairs share bytes.

    The same plan, penalties and moves give the same result, which never costs more than `plan`.

    Args:
        plan: A plan that fits its capacity.
        penalties: Costs of pairs of the plan's buffers.
        moves: Number of moves, each of which removes some buffers and places them again.

    Raises:
        PlanError: The plan has no capacity, does not fit it or has constraints, or a penalty names
            an unknown buffer.

    Source: Kirkpatrick, Gelatt and Vecchi, "Optimization by Simulated Annealing", 1983, over moves
    that ruin and recreate.
    """
    problem = plan.problem
    if problem.capacity_bytes is None or not plan.fits or problem.constraints is not None:
        raise PlanError(
            f"The plan has capacity {problem.capacity_bytes}, peak {plan.peak_bytes} and "
            f"{'no' if problem.constraints is None else 'some'} constraints; to reduce reuse it "
            "must have a capacity, fit it and have no constraints."
        )
    pairs = penalties.rows[:, :2]
    for index in np.flatnonzero(((pairs < 0) | (pairs >= problem.count)).any(axis=1))[:1]:
        raise PlanError(
            f"Penalty {index} names buffers {pairs[index, 0]} and {pairs[index, 1]}; there are "
            f"{problem.count} buffers, from 0."
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
