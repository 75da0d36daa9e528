"""Whether a plan fits a limit, and what would fit where it does not."""

from collections.abc import Callable

from tightship.engine.memory_plan import MemoryPlan
from tightship.errors import CapacityError
from tightship.quantity import format_bytes, format_limit

ARENAS_MAX = 64
"""Arenas a model may have at once where no limit says fewer."""

PlanForBatch = Callable[[int], MemoryPlan]


def check_budget(
    plan: MemoryPlan,
    limit_bytes: int,
    dynamic_bytes: int | None,
    smaller: tuple[int, PlanForBatch] | None,
) -> None:
    """Refuse a plan that cannot be promised to stay within a limit.

    Args:
        plan: What the model takes.
        limit_bytes: What it may take.
        dynamic_bytes: Bound on what steps outside the plan allocate, which will be enforced.
        smaller: The batch of `plan`, and how to plan another; None where the batch is fixed.

    Raises:
        CapacityError: The plan and its dynamic region take more than the limit, or the region
            has no bound; says the smallest limit and the largest batch that would hold.
    """
    if not plan.is_exact and dynamic_bytes is None:
        raise CapacityError(_unbounded(plan), needed_bytes=plan.peak_bytes,
                            limit_bytes=limit_bytes)  # fmt: skip
    needed = plan.peak_bytes + (dynamic_bytes or 0)
    if needed <= limit_bytes:
        return
    advice = f"Raise the limit to {format_limit(needed)}"
    fixed = needed - plan.arena_bytes - plan.io_bytes
    if smaller is not None:
        batch, plan_for = smaller
        fits = largest_batch(batch, limit_bytes - (dynamic_bytes or 0), plan_for)
        advice += (
            f", or the batch of {batch} down to {fits}, the largest that fits."
            if fits
            else "; not even a batch of 1 fits."
        )
    else:
        advice += "; the shapes of this model are fixed, so no smaller batch exists."
    raise CapacityError(
        f"`{plan.model}` needs {format_bytes(needed)} ({needed} bytes), more than the limit of "
        f"{format_bytes(limit_bytes)}: weights {format_bytes(plan.weights_bytes)}, arena "
        f"{format_bytes(plan.arena_bytes)}, inputs and outputs {format_bytes(plan.io_bytes)}, "
        f"runtime {format_bytes(plan.runtime_bytes)}; {format_bytes(fixed)} of it whatever the "
        f"shapes. {advice}",
        needed_bytes=needed,
        limit_bytes=limit_bytes,
    )


def _unbounded(plan: MemoryPlan) -> str:
    steps = [step for step in plan.steps if step.dynamic_reason is not None]
    shown = ", ".join(f"`{s.name}` ({s.operator}: {s.dynamic_reason})" for s in steps[:3])
    more = f" and {len(steps) - 3} more" if len(steps) > 3 else ""
    return (
        f"`{plan.model}` has steps that allocate outside the plan: {shown}{more}. A limit holds "
        "only with a bound on what they take: give `dynamic_memory` (`--dynamic-memory 64MiB`)."
    )


def largest_batch(batch: int, limit_bytes: int, plan_for: PlanForBatch) -> int:
    """The largest batch below `batch` whose plan takes at most `limit_bytes`; 0 if none.

    A larger batch is taken to need no less.
    """
    low, high = 0, batch
    while high - low > 1:
        middle = (low + high) // 2
        if plan_for(middle).peak_bytes <= limit_bytes:
            low = middle
        else:
            high = middle
    return low


def arenas_within(plan: MemoryPlan, limit_bytes: int | None, dynamic_bytes: int) -> int:
    """Runs that may go on at once: each takes an arena, inputs, outputs and a dynamic region."""
    if limit_bytes is None:
        return ARENAS_MAX
    spare = limit_bytes - plan.peak_bytes - dynamic_bytes
    each = max(plan.arena_bytes + plan.io_bytes + dynamic_bytes, 1)
    return min(1 + spare // each, ARENAS_MAX)
