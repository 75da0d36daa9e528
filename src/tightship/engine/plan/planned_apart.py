"""States the memory of a model that another process plans and packs for the one that loads it."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tightship.brief import brief
from tightship.engine.plan.footprint import (
    OPENING_BYTES,
    PYTHON_BYTES,
    PYTHON_OWN_BYTES,
    WAITING_BYTES,
    planning_bytes,
    taken_over_runtime_bytes,
)

if TYPE_CHECKING:
    from tightship.engine.plan.memory_plan import MemoryPlan
    from tightship.engine.program.program import Lowered


@brief
@dataclass(frozen=True, slots=True)
class PlannedApart:
    """Memory of loading a model that another process plans and packs.

    Attributes:
        process_bytes: Most that the other process takes, with its own Python; it ends before the
            process that loads has arena, inputs and outputs.
        together_bytes: Most that both processes take at once, beyond what the one that loads had
            before: room for them is needed in a container.
        here_bytes: Peak of a process that plans the file itself, as one does that has imported
            onnx, or for which a container has no room for two.
    """

    process_bytes: int
    together_bytes: int
    here_bytes: int


def planned_apart(plan: "MemoryPlan", lowered: "Lowered", node_count: int) -> "MemoryPlan":
    """State a plan for a process that takes over what another planned.

    Args:
        plan: Plan for a process that plans the file itself.
        lowered: Its program.
        node_count: Nodes of the file, as `counted_nodes` counts them.
    """
    planned = plan.weights_bytes + planning_bytes(lowered, node_count)
    tensors = plan.peak_bytes - plan.runtime_bytes
    opening = 0 if "kernels" in plan.key else OPENING_BYTES - tensors  # before there are tensors
    stated = replace(plan, runtime_bytes=max(taken_over_runtime_bytes(lowered), opening))
    together = max(stated.peak_bytes, PYTHON_OWN_BYTES + planned + WAITING_BYTES)
    apart = PlannedApart(PYTHON_BYTES + planned, together, plan.peak_bytes)
    return replace(stated, apart=apart)


def planned_here(plan: "MemoryPlan") -> "MemoryPlan":
    """State a plan for a process that plans the file itself."""
    runtime_bytes = plan.runtime_bytes + plan.here_bytes - plan.peak_bytes
    return replace(plan, runtime_bytes=runtime_bytes, apart=None)
