"""A training step lowered and placed: what it takes, before any of it is allocated."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tightship.engine.arranged import Arranged, arranged, as_given, updating
from tightship.engine.footprint import program_bytes, runtime_bytes
from tightship.engine.library import library_threads, open_library
from tightship.engine.lower.select import rewritten, select
from tightship.engine.program import Lowered
from tightship.engine.weight_store import aligned_offsets
from tightship.errors import CapacityError, InputError
from tightship.graph import size_bytes
from tightship.quantity import format_bytes, format_limit
from tightship.training.block import Held
from tightship.training.step_graph import StepGraph

UNARRANGED = "reorder"
"""Among the passes left out: steps run as they were written, updates last."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a step may take.

    Attributes:
        threads: Threads of each kernel.
        without: Passes left out; `reorder` for the order of steps.
        limit_bytes: Everything together; None for no limit.
        recompute: Operations that may be done again to save memory, as a share of all.
    """

    threads: int = 1
    without: Collection[str] = ()
    limit_bytes: int | None = None
    recompute: float = 0.0

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InputError(f"`threads` is {self.threads}; it must be at least 1.")
        if not 0 <= self.recompute <= 1:
            raise InputError(
                f"`recompute` is {self.recompute}; it is a share of the step's operations, from 0 "
                "to 1."
            )


@dataclass(frozen=True, slots=True)
class TrainingMemory:
    """Every byte a training step takes.

    Attributes:
        weights_bytes: Weights and running statistics.
        state_bytes: What the optimizer keeps of them, gradients of parts of a batch among it.
        arena_bytes: Activations, gradients and scratch, behind the two in the same block.
        constants_bytes: What is not trained.
        io_bytes: Inputs and the loss, where the caller has them.
        runtime_bytes: Libraries, generated code and program, measured and stated in advance.
        given_arena_bytes: What the arena would take with steps in the order of the graph.
        recomputed_share: Operations done again, as a share of all.
        clipped_bytes: Of the arena, gradients that lie there at once for their norm is taken; 0
            where each is gone as soon as its weight has changed.
    """

    weights_bytes: int
    state_bytes: int
    arena_bytes: int
    constants_bytes: int
    io_bytes: int
    runtime_bytes: int
    given_arena_bytes: int
    recomputed_share: float
    clipped_bytes: int

    @property
    def block_bytes(self) -> int:
        """The one block: weights, state and arena."""
        return self.weights_bytes + self.state_bytes + self.arena_bytes

    @property
    def peak_bytes(self) -> int:
        """Everything the process gains."""
        return self.block_bytes + self.constants_bytes + self.io_bytes + self.runtime_bytes


@dataclass(frozen=True, slots=True)
class Planned:
    """A step placed, and what gathers gradients for it; nothing of them in memory yet."""

    step: StepGraph
    arranged: Arranged
    held: Held
    memory: TrainingMemory
    gathering: Arranged | None = None


def planned(step: StepGraph, terms: Terms) -> Planned:
    """A step lowered, in the order that takes least, within its terms.

    Raises:
        CapacityError: It takes more than the limit, whatever is done again within `recompute`.
        GraphError: A node cannot be run.
        InputError: A name in `without` is no pass.
        LibraryError: oneDNN cannot be used.
    """
    without = [name for name in terms.without if name != UNARRANGED]
    if "onednn" not in without:
        open_library()
    held = Held(step.held)
    parts = (step, step.gathering) if step.gathering else (step,)
    programs = [_lowered(part, terms.threads, without) for part in parts]
    lowered = programs[0]
    runtime = runtime_bytes(lowered, len(step.graph.nodes))
    runtime += sum(program_bytes(each) for each in programs[1:])
    ours = {operand.slot for name, operand in lowered.inputs.items() if name in step.held}
    ours |= {lowered.outputs[name].slot for name in step.follows}
    io_bytes = sum(
        slot.size_bytes
        for index, slot in enumerate(lowered.slots)
        if slot.external and index not in ours
    )

    def memory(found: Sequence[Arranged]) -> TrainingMemory:
        own = set(step.weights)
        weights = aligned_offsets(tensor for tensor in held.tensors if tensor.name in own)[1]
        return TrainingMemory(
            weights,
            held.size_bytes - weights,
            max(each.placement.arena_bytes for each in found),
            sum(each.placement.weights_bytes for each in found),
            io_bytes,
            runtime,
            max(each.given_bytes for each in found),
            max(each.added_share for each in found),
            _clipped_bytes(step),
        )

    found = _arranged(programs, terms, memory)
    _check(memory(found), terms)
    return Planned(step, found[0], held, memory(found), found[1] if step.gathering else None)


def _lowered(step: StepGraph, threads: int, without: Collection[str]) -> Lowered:
    with library_threads(threads):
        lowered = select(rewritten(step.graph, without), threads, without)
    return updating(lowered, step.follows, step.shown)


def _arranged(
    programs: Sequence[Lowered],
    terms: Terms,
    memory: Callable[[Sequence[Arranged]], TrainingMemory],
) -> list[Arranged]:
    """Each in its best order; with steps done again where that is needed and allowed."""
    if UNARRANGED in terms.without:
        return [as_given(each) for each in programs]
    found = [arranged(each) for each in programs]
    if not terms.recompute or _fits(memory(found), terms.limit_bytes):
        return found
    beside = memory(found).peak_bytes - memory(found).arena_bytes
    budget = None if terms.limit_bytes is None else max(terms.limit_bytes - beside, 0)
    return [arranged(each, budget_bytes=budget, share=terms.recompute) for each in programs]


def _clipped_bytes(step: StepGraph) -> int:
    """Of gradients whose squares are added up."""
    return sum(
        size_bytes(value.dtype, value.static_shape)
        for node in step.graph.nodes
        if node.operator == "SquaresAdded" and (value := step.graph.value(node.inputs[0])).dtype
    )


def _fits(memory: TrainingMemory, limit_bytes: int | None) -> bool:
    return limit_bytes is not None and memory.peak_bytes <= limit_bytes


def _check(memory: TrainingMemory, terms: Terms) -> None:
    if terms.limit_bytes is None or memory.peak_bytes <= terms.limit_bytes:
        return
    advice = "" if terms.recompute else ", let it do some operations again (`recompute=0.1`)"
    if memory.clipped_bytes:
        advice += (
            f", leave out `clip_norm`, for which {format_bytes(memory.clipped_bytes)} of gradients "
            "are there at once"
        )
    raise CapacityError(
        f"A training step needs {format_bytes(memory.peak_bytes)} where "
        f"{format_bytes(terms.limit_bytes)} are allowed: {format_bytes(memory.weights_bytes)} are "
        f"weights, {format_bytes(memory.state_bytes)} the optimizer's, "
        f"{format_bytes(memory.arena_bytes)} the arena. Raise the limit to "
        f"{format_limit(memory.peak_bytes)}{advice}, or give the batch in parts (`accumulate`).",
        needed_bytes=memory.peak_bytes,
        limit_bytes=terms.limit_bytes,
    )
