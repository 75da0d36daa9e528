"""Verifies the cost of reuse. It shares no code with any solver."""

import numpy as np

from tightship.planner.penalties import ReusePenalties
from tightship.planner.plan import Plan
from tightship.planner.problem import Int64Array, Problem
from tightship.planner.verify import verify
from tightship.public_calls import public_call


@public_call
def verified_reuse_cost(plan: Plan, penalties: ReusePenalties) -> int:
    """Verify a plan and compute the cost of its reuse of bytes.

    Args:
        plan: The plan.
        penalties: Costs of pairs of the plan's buffers.

    Raises:
        InvalidPlanError: `verify` fails.
    """
    verify(plan)
    return reuse_cost(plan.problem, penalties, plan.offset_bytes)


def reuse_cost(problem: Problem, penalties: ReusePenalties, offset_bytes: Int64Array) -> int:
    """Sum the costs of pairs that are never live together and share at least one byte.

    The number of shared bytes and the buffers between the two in time do not matter. A pair that is
    live together reuses nothing, and neither does an empty buffer.

    Args:
        problem: n buffers.
        penalties: Costs of pairs of these buffers.
        offset_bytes: Offsets in bytes; int64 of shape (n,).
    """
    first, second, cost = penalties.rows.T
    start, stop = problem.start_step, problem.stop_step
    apart = (stop[first] <= start[second]) | (stop[second] <= start[first])
    stop_bytes = offset_bytes + problem.size_bytes
    low = np.maximum(offset_bytes[first], offset_bytes[second])
    high = np.minimum(stop_bytes[first], stop_bytes[second])
    return int(cost[apart & (low < high)].sum())
