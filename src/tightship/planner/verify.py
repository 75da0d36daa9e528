"""Verifies plans. It shares no code with any solver.

A sweep over the steps keeps the live buffers sorted by offset. They are disjoint as long as each
new buffer is disjoint from its two neighbours, so only neighbours are compared.
"""

import numpy as np

from tightship._core import first_overlap
from tightship.errors import InvalidPlanError
from tightship.planner.plan import Plan
from tightship.planner.problem import Int64Array, Problem
from tightship.public_calls import public_call

OFFSET_BYTES_MAX = 2**62
"""Largest offset: with a size, which is smaller, it adds up within int64."""


@public_call
def verify(plan: Plan) -> None:
    """Check a plan and its claims.

    Args:
        plan: The plan.

    Raises:
        InvalidPlanError: `verify_offsets` fails, the peak is below the plan's lower bound, a plan
            that claims to fit exceeds its capacity, or its status contradicts its numbers.
    """
    verify_offsets(plan.problem, plan.offset_bytes, plan.bank)
    peak, bound, capacity = plan.peak_bytes, plan.lower_bound_bytes, plan.problem.capacity_bytes
    if peak < bound:
        raise InvalidPlanError(
            f"The plan has peak_bytes={peak} below lower_bound_bytes={bound}: the bound is wrong."
        )
    if plan.status == "optimal" and peak != bound:
        raise InvalidPlanError(
            f"The plan is called optimal with peak_bytes={peak} and lower_bound_bytes={bound}."
        )
    if plan.status in ("optimal", "feasible"):
        _verify_capacity(plan)
    elif plan.fits:
        raise InvalidPlanError(
            f"The plan is called {plan.status}, but its {peak} bytes fit the capacity {capacity}."
        )
    elif (
        plan.status == "infeasible"
        and plan.bank is None
        and (capacity is None or bound <= capacity)
    ):
        raise InvalidPlanError(
            f"The plan is called infeasible, but lower_bound_bytes={bound} is within the "
            f"capacity of {capacity} bytes."
        )


@public_call
def verify_offsets(
    problem: Problem, offset_bytes: Int64Array, bank: Int64Array | None = None
) -> None:
    """Check that no two buffers share a byte in a step; the capacity is not checked.

    Args:
        problem: n buffers.
        offset_bytes: Offsets in bytes; int64 of shape (n,).
        bank: The bank of each buffer, shape (n,), if the problem has banks; otherwise None.

    Raises:
        InvalidPlanError: Two live buffers overlap, an offset is missing, negative or misaligned,
            or a constraint of the problem is violated. The message names the buffers, bytes and
            steps.

    Complexity: O(n log n) comparisons for n buffers.
    """
    if offset_bytes.shape != (problem.count,):
        raise InvalidPlanError(
            f"The plan has offsets of shape {offset_bytes.shape}; there are {problem.count} "
            "buffers."
        )
    for index in np.flatnonzero((offset_bytes < 0) | (offset_bytes > OFFSET_BYTES_MAX))[:1]:
        raise InvalidPlanError(
            f"Buffer {problem.label(index)} has offset_bytes={offset_bytes[index]}; it must be "
            f"in [0, {OFFSET_BYTES_MAX}]."
        )
    for index in np.flatnonzero(offset_bytes % problem.alignment)[:1]:
        raise InvalidPlanError(
            f"Buffer {problem.label(index)} has offset_bytes={offset_bytes[index]}; it must be a "
            f"multiple of its alignment {problem.alignment[index]}."
        )
    if problem.constraints is None:
        _verify_disjoint(problem, offset_bytes)
    else:
        from tightship.planner.verify_constraints import Places, verify_constraints  # few need it

        verify_constraints(problem, problem.constraints, Places(offset_bytes, bank))


def _verify_disjoint(problem: Problem, offset_bytes: Int64Array) -> None:
    rows = (problem.size_bytes, problem.start_step, problem.stop_step, offset_bytes)
    overlap = first_overlap(np.stack(rows))
    if overlap is not None:
        from tightship.planner.verify_constraints import collision

        pair = list(overlap)
        tops = (offset_bytes + problem.size_bytes)[pair]
        raise collision(
            problem,
            overlap,
            (offset_bytes[pair].max(), tops.min()),
            (problem.start_step[pair].max(), problem.stop_step[pair].min()),
        )


def _verify_capacity(plan: Plan) -> None:
    problem = plan.problem
    tops = plan.offset_bytes + problem.size_bytes
    limits = [("the capacity", problem.capacity_bytes, tops)]
    if plan.bank is not None and problem.constraints is not None:
        for index, bank in enumerate(problem.constraints.banks):
            inside = np.where(plan.bank == index, tops, 0)
            limits.append((f"the capacity of bank `{bank.name}`", bank.capacity_bytes, inside))
    for name, capacity, ends in limits:
        if capacity is None:
            continue
        for index in np.flatnonzero(ends > capacity)[:1]:
            raise InvalidPlanError(
                f"Buffer {problem.label(index)} ends at byte {ends[index]}; {name} is "
                f"{capacity} bytes."
            )
