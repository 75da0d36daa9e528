"""Checks a plan against a limit, and finds what would fit."""

from collections.abc import Callable, Mapping, Sequence

from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.errors import CapacityError
from tightship.quantity import format_bytes, format_limit

PlanForBatch = Callable[[int], MemoryPlan]


def check_budget(
    plan: MemoryPlan,
    limit_bytes: int,
    dynamic_bytes: int | None,
    smaller: tuple[int, PlanForBatch] | None,
) -> None:
    """Check that a plan is certain to stay within a limit.

    Args:
        plan: Plan of the model.
        limit_bytes: Limit on all that the plan has.
        dynamic_bytes: Bound on what steps outside the plan allocate, which will be enforced.
        smaller: Batch of `plan`, and a function that plans another; None if the batch is fixed.

    Raises:
        CapacityError: The plan and its dynamic bytes exceed the limit, or the latter have no bound;
            names the smallest limit and the largest batch that would hold.
    """
    needed = _needed_bytes(plan, limit_bytes, dynamic_bytes)
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
        f"`{plan.model}` needs {_over(plan, needed, limit_bytes)}; {format_bytes(fixed)} of it "
        f"whatever the shapes. {advice}",
        needed_bytes=needed,
        limit_bytes=limit_bytes,
    )


def check_shapes(
    plan: MemoryPlan,
    shapes: Mapping[str, Sequence[int]],
    limit_bytes: int,
    dynamic_bytes: int | None,
) -> None:
    """Check a program for further input shapes against the limit of a loaded model.

    Args:
        plan: Plan of the model with only that program, and its weights packed already.
        shapes: Shapes of its inputs.
        limit_bytes: Limit on all that the plan has.
        dynamic_bytes: Bound on what steps outside the plan allocate.

    Raises:
        CapacityError: The plan exceeds the limit, or is unbounded; names the shapes.
    """
    needed = _needed_bytes(plan, limit_bytes, dynamic_bytes)
    if needed <= limit_bytes:
        return
    named = ", ".join(f"`{name}` {list(shape)}" for name, shape in shapes.items())
    raise CapacityError(
        f"With the shape of {named}, `{plan.model}` needs {_over(plan, needed, limit_bytes)}. "
        f"Load it with a limit of {format_limit(needed)}, or give smaller inputs.",
        needed_bytes=needed,
        limit_bytes=limit_bytes,
    )


def _needed_bytes(plan: MemoryPlan, limit_bytes: int, dynamic_bytes: int | None) -> int:
    """Return the bytes of the plan and of what steps outside it allocate.

    Raises:
        CapacityError: The latter have no bound.
    """
    if not plan.is_exact and dynamic_bytes is None:
        raise CapacityError(_unbounded(plan), needed_bytes=plan.peak_bytes,
                            limit_bytes=limit_bytes)  # fmt: skip
    return plan.peak_bytes + (dynamic_bytes or 0)


def _over(plan: MemoryPlan, needed_bytes: int, limit_bytes: int) -> str:
    return (
        f"{format_bytes(needed_bytes)} ({needed_bytes} bytes), more than the limit of "
        f"{format_bytes(limit_bytes)}: weights {format_bytes(plan.weights_bytes)}, arena "
        f"{format_bytes(plan.arena_bytes)}, inputs and outputs {format_bytes(plan.io_bytes)}, "
        f"runtime {format_bytes(plan.runtime_bytes)}"
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
    """Find the largest batch below `batch` whose plan takes at most `limit_bytes`; 0 if none.

    A larger batch is assumed to need no less.
    """
    low, high = 0, batch
    while high - low > 1:
        middle = (low + high) // 2
        if plan_for(middle).peak_bytes <= limit_bytes:
            low = middle
        else:
            high = middle
    return low
