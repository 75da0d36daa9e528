"""A training step lowered and placed: what it takes, before any of it is allocated."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import product

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
from tightship.training.bodies import allocated_bytes
from tightship.training.pieces import step_in_pieces
from tightship.training.step_graph import StepGraph

UNARRANGED = "reorder"
"""Among the passes left out: steps run as they were written, updates last."""

WHOLE = "pieces"
"""Among the passes left out: no gradient is made and consumed in pieces."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a step may take.

    Attributes:
        threads: Threads of each kernel.
        without: Passes left out; `reorder` for the order of steps, `pieces` for large gradients in
            pieces.
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
        bodies_bytes: What loops and branches that are not written out allocate beside the arena,
            one at a time, as far as sizes are known.
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
    bodies_bytes: int
    clipped_bytes: int

    @property
    def block_bytes(self) -> int:
        """The one block: weights, state and arena."""
        return self.weights_bytes + self.state_bytes + self.arena_bytes

    @property
    def peak_bytes(self) -> int:
        """Everything the process gains."""
        beside = self.constants_bytes + self.bodies_bytes + self.io_bytes + self.runtime_bytes
        return self.block_bytes + beside


@dataclass(frozen=True, slots=True)
class Part:
    """A program of a trainer's.

    Attributes:
        step: What it runs, as kernels are selected for it.
        lowered: Its steps in the order of the graph.
        arranged: Its steps in their order, and where its operands are.
    """

    step: StepGraph
    lowered: Lowered
    arranged: Arranged

    def again(self, budget_bytes: int | None, share: float) -> "Part":
        """The same with steps that run again, to take no more than a budget."""
        found = arranged(self.lowered, budget_bytes=budget_bytes, share=share)
        return replace(self, arranged=replace(found, given_bytes=self.arranged.given_bytes))


@dataclass(frozen=True, slots=True)
class Planned:
    """A step placed; nothing of it in memory yet.

    Attributes:
        step: What it was planned for.
        parts: The step, and what gathers gradients for it where something does.
        held: What stays from run to run.
        memory: What it takes.
    """

    step: StepGraph
    parts: tuple[Part, ...]
    held: Held
    memory: TrainingMemory


def planned(step: StepGraph, terms: Terms) -> Planned:
    """A step lowered, in the order that takes least, within its terms.

    Raises:
        CapacityError: It takes more than the limit, whatever is done again within `recompute`.
        GraphError: A node cannot be run.
        InputError: A name in `without` is no pass.
        LibraryError: oneDNN cannot be used.
    """
    without = [name for name in terms.without if name not in (UNARRANGED, WHOLE)]
    if "onednn" not in without:
        open_library()
    held = Held(step.held)
    ways = [_ways(part, terms, without) for part in (step, step.gathering) if part]

    def memory(parts: Sequence[Part]) -> TrainingMemory:
        return _memory(step, held, parts)

    parts = _best(ways, terms, memory)
    if terms.recompute and UNARRANGED not in terms.without:
        parts = _with_repeats(ways, parts, terms, memory)
    found = memory(parts)
    _check(found, terms)
    return Planned(step, parts, held, found)


def _ways(step: StepGraph, terms: Terms, without: Collection[str]) -> list[Part]:
    """A program of a step: as it is, and with large gradients in pieces where there are any."""
    whole = replace(step, graph=rewritten(step.graph, without), gathering=None)
    lowered = _lowered(whole, terms.threads, without)
    if UNARRANGED in terms.without:
        return [Part(whole, lowered, as_given(lowered))]
    found = [Part(whole, lowered, arranged(lowered))]
    if WHOLE not in terms.without:
        cut = step_in_pieces(whole, found[0].arranged.placement.arena_bytes)
        if cut is not None:
            lowered = _lowered(cut, terms.threads, without)
            given_bytes = found[0].arranged.given_bytes
            made = replace(arranged(lowered), given_bytes=given_bytes)
            found.append(Part(cut, lowered, made))
    return found


def _lowered(step: StepGraph, threads: int, without: Collection[str]) -> Lowered:
    with library_threads(threads):
        lowered = select(step.graph, threads, without)
    return updating(lowered, step.follows, step.shown)


def _with_repeats(
    ways: Sequence[Sequence[Part]],
    chosen: tuple[Part, ...],
    terms: Terms,
    memory: Callable[[Sequence[Part]], TrainingMemory],
) -> tuple[Part, ...]:
    """Programs with steps done again, where that is needed: as few as will do within a limit."""
    if _fits(memory(chosen), terms.limit_bytes):
        return chosen

    def again(index: int, part: Part) -> Part:
        beside = memory((*chosen[:index], part, *chosen[index + 1 :]))
        budget = None
        if terms.limit_bytes is not None:
            budget = max(terms.limit_bytes - (beside.peak_bytes - beside.arena_bytes), 0)
        return part.again(budget, terms.recompute)

    repeated = [[again(index, part) for part in each] for index, each in enumerate(ways)]
    return _best(repeated, terms, memory)


def _best(
    ways: Sequence[Sequence[Part]],
    terms: Terms,
    memory: Callable[[Sequence[Part]], TrainingMemory],
) -> tuple[Part, ...]:
    """A way for each program: within the limit, then with less done again there, else in less.

    The first of each, unless others have a smaller arena or, within the limit, do less again.
    """
    first = tuple([each[0] for each in ways])
    most = memory(first)

    def rank(parts: tuple[Part, ...]) -> tuple[bool, float, int]:
        found = memory(parts)
        fits = _fits(found, terms.limit_bytes)
        return not fits, found.recomputed_share if fits else 0.0, found.peak_bytes

    def is_less(parts: tuple[Part, ...]) -> bool:
        found = memory(parts)
        return found.arena_bytes < most.arena_bytes or (
            _fits(found, terms.limit_bytes) and found.recomputed_share < most.recomputed_share
        )

    return min((first, *filter(is_less, product(*ways))), key=rank)


def _memory(step: StepGraph, held: Held, parts: Sequence[Part]) -> TrainingMemory:
    """What programs take that have a block in common."""
    first, lowered = parts[0].step, parts[0].lowered
    ours = {operand.slot for name, operand in lowered.inputs.items() if name in step.held}
    ours |= {lowered.outputs[name].slot for name in first.follows}
    io_bytes = sum(
        slot.size_bytes
        for index, slot in enumerate(lowered.slots)
        if slot.external and index not in ours
    )
    runtime = runtime_bytes(lowered, len(step.graph.nodes))
    runtime += sum(program_bytes(each.lowered) for each in parts[1:])
    own = set(step.weights)
    weights = aligned_offsets(tensor for tensor in held.tensors if tensor.name in own)[1]
    found = [each.arranged for each in parts]
    return TrainingMemory(
        weights,
        held.size_bytes - weights,
        max(each.placement.arena_bytes for each in found),
        sum(each.placement.weights_bytes for each in found),
        io_bytes,
        runtime,
        max(each.given_bytes for each in found),
        max(each.added_share for each in found),
        max(allocated_bytes(each.step.graph) for each in parts),
        _clipped_bytes(step),
    )


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
