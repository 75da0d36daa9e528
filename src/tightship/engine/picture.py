"""A memory plan as the plain data that views draw."""

from tightship.engine.memory_plan import MemoryPlan, PlannedStep
from tightship.view.picture import Picture, Rectangle, Step


def picture_of(plan: MemoryPlan) -> Picture:
    """Everything a view shows of a plan; names and numbers are the plan's own."""
    return Picture(
        title=plan.model,
        arena_bytes=plan.arena_bytes,
        lower_bound_bytes=plan.lower_bound_bytes,
        rectangles=tuple(
            Rectangle(
                name=tensor.name,
                size_bytes=tensor.size_bytes,
                offset_bytes=tensor.offset_bytes,
                start_step=tensor.start_step,
                stop_step=tensor.stop_step,
                kind=tensor.kind,
                shares_with=tensor.shares_with,
            )
            for tensor in plan.tensors
        ),
        steps=tuple(_step(step) for step in plan.steps),
        parts={
            "weights": plan.weights_bytes,
            "inputs and outputs": plan.io_bytes,
            "runtime": plan.runtime_bytes,
        },
        strategy=plan.strategy,
        strategies={"unplanned": plan.unplanned_bytes, **plan.strategies},
        key=plan.key,
        inputs=plan.inputs,
        outputs=plan.outputs,
    )


def _step(step: PlannedStep) -> Step:
    kernel = f"{step.kernel} {step.implementation}".strip()
    return Step(step.name, step.operator, kernel, step.load_bytes, step.dynamic_reason)
