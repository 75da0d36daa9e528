"""Plans a training step as `tightship.plan` does, before any of it is allocated."""

from collections.abc import Iterator
from dataclasses import replace

from tightship.brief import Rows
from tightship.engine.compile.compile_graph import Settings, key_of
from tightship.engine.plan.memory_plan import MemoryPlan, PlannedWeight
from tightship.engine.plan.placement import memory_plan
from tightship.engine.program.program import PackedWeight
from tightship.graph.optimizer import Optimizer
from tightship.training.model_step import StepSource, model_step
from tightship.training.planned import Planned, Terms, planned
from tightship.training.step_graph import StepGraph


def model_step_plan(source: StepSource, terms: Terms, optimizer: Optimizer) -> MemoryPlan:
    """Plan the training step of a model.

    Raises:
        CapacityError, GraphError, InputError, LibraryError: As from `tightship.train`.
    """
    step, _ = model_step(source, optimizer)
    return step_plan(step, terms, optimizer, source.name)


def step_plan(step: StepGraph, terms: Terms, optimizer: Optimizer, name: str) -> MemoryPlan:
    """Plan a step; its peak is that of a `Trainer` of the step.

    Args:
        step: The step.
        terms: Limits of it.
        optimizer: The optimizer, for the report.
        name: Name of the model in reports.

    Returns:
        Plan in which tensors of the optimizer, and gradients that are gathered, are weights.

    Raises:
        CapacityError, GraphError, LibraryError: As from `planned`.
    """
    made = planned(step, terms)
    memory = made.memory
    part = max(made.parts, key=lambda each: each.arranged.placement.arena_bytes)
    placement = part.arranged.placement
    key = key_of(Settings(None, terms.threads, _passes(terms)), placement)
    key["step"] = f"training, {type(optimizer).__name__}"
    if terms.precision != "float32":
        key["precision"] = terms.precision
    if memory.recomputed_share:
        key["recomputed"] = f"{memory.recomputed_share:.3f} of the operations"
    found = memory_plan(placement, name, memory.runtime_bytes + memory.bodies_bytes, key)
    shown, own = set(step.shown), {*step.held, step.rate[0], step.counter, step.dropout[0]}
    return replace(
        found,
        weights_bytes=memory.constants_bytes + memory.weights_bytes + memory.state_bytes,
        optimizer_bytes=memory.state_bytes,
        io_bytes=memory.io_bytes,
        inputs={name: text for name, text in found.inputs.items() if name not in own},
        outputs={name: text for name, text in found.outputs.items() if name in shown},
        weights=Rows([*_held(made), *found.weights]),
    )


def _passes(terms: Terms) -> list[str]:
    """Return the passes left out that kernels depend on."""
    from tightship.engine.lower.pipeline import pass_names

    names = {*pass_names(), "onednn"}
    return [name for name in terms.without if name in names]


def _held(made: Planned) -> Iterator[PlannedWeight]:
    """Yield the tensors that stay between steps, each with the first step that reads it."""
    lowered = made.parts[0].arranged.placement.lowered
    readers: dict[int, int] = {}
    for index, step in enumerate(lowered.steps):
        for operand in step.reads:
            readers.setdefault(operand.slot, index)
    for tensor in made.held.tensors:
        place = lowered.inputs.get(tensor.name)
        first = -1 if place is None else readers.get(place.slot, -1)
        yield PlannedWeight(tensor.name, tensor.size_bytes, _type(tensor), first)


def _type(tensor: PackedWeight) -> str:
    shape = "x".join(map(str, tensor.constant.shape)) or "scalar"
    return f"{shape} {tensor.constant.dtype.value}"
