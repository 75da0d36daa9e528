"""Lowers and places a training step: computes its memory before any of it is allocated."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import Literal

from tightship.engine.library import library_threads, open_library
from tightship.engine.lower import rewritten, select
from tightship.engine.lower.step_passes.stored_halves import with_stored_halves
from tightship.engine.plan.footprint import program_bytes, runtime_bytes
from tightship.engine.plan.ordered_program import (
    OrderedProgram,
    arranged,
    as_given,
    least_arena_bytes,
    updating,
)
from tightship.engine.program.program import Lowered
from tightship.engine.weights.weight_store import aligned_offsets
from tightship.errors import CapacityError, InputError
from tightship.graph import size_bytes
from tightship.quantity import format_bytes, format_limit
from tightship.training.block import StateTensors
from tightship.training.bodies import allocated_bytes
from tightship.training.step_graph import StepGraph
from tightship.training.tiles import step_in_tiles

UNARRANGED = "reorder"
"""Name of a pass to leave out, so that steps run in the order of the graph, updates last."""

WHOLE = "tiles"
"""Name of a pass to leave out, so that no gradient is cut into tiles."""

PRECISIONS: tuple[Literal["float32", "bfloat16"], ...] = ("float32", "bfloat16")
"""Types that activations and gradients may wait in."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Limits of a step.

    Attributes:
        threads: Threads of each kernel; 1 by default.
        without: Passes to leave out; `reorder` keeps the order of steps, `tiles` keeps large
            gradients whole.
        limit_bytes: Most bytes of the whole step; None, the default, sets no limit.
        recompute: Share of the operations that may be computed again to save memory, at least 0;
            None, the default: as many as the limit needs, and none without a limit.
        precision: Type that activations and their gradients are stored in while they wait:
            `float32`, the default, or `bfloat16`.
    """

    threads: int = 1
    without: Collection[str] = ()
    limit_bytes: int | None = None
    recompute: float | None = None
    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InputError(f"`threads` is {self.threads}; it must be at least 1.")
        if self.precision not in PRECISIONS:
            names = " or ".join(f"`{name}`" for name in PRECISIONS)
            raise InputError(f"`precision` is {self.precision!r}; it must be {names}.")
        if self.recompute is not None and not 0 <= self.recompute < inf:
            raise InputError(
                f"`recompute` is {self.recompute}; it must be a share of the step's operations, "
                "such as 0.1, and at least 0."
            )

    @property
    def share(self) -> float:
        """Largest share of the operations that may be computed again; infinite without a limit."""
        if self.recompute is None:
            return 0.0 if self.limit_bytes is None else inf
        return self.recompute


@dataclass(frozen=True, slots=True)
class TrainingMemory:
    """Every byte that a training step takes.

    Attributes:
        weights_bytes: Weights and running statistics.
        state_bytes: The optimizer's tensors, including gradients accumulated over parts of a batch.
        arena_bytes: Activations, gradients and scratch, in the same block as the two above.
        constants_bytes: Constants that are not trained.
        io_bytes: Inputs and the loss, in the caller's memory.
        runtime_bytes: Libraries, generated code and the program, by a measured formula.
        given_arena_bytes: Size of the arena with steps in the order of the graph.
        recomputed_share: Share of the operations that are computed again.
        bodies_bytes: Bytes of known size that unexpanded loops and branches allocate besides the
            arena, one at a time.
        clipped_bytes: Part of the arena for gradients that are all live while their norm is taken;
            0 if each gradient dies when its weight is updated.
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
        """Size of the block of weights, state and arena."""
        return self.weights_bytes + self.state_bytes + self.arena_bytes

    @property
    def peak_bytes(self) -> int:
        """All bytes that the process gains."""
        beside = self.constants_bytes + self.bodies_bytes + self.io_bytes + self.runtime_bytes
        return self.block_bytes + beside


@dataclass(frozen=True, slots=True)
class Part:
    """A program of a trainer.

    Attributes:
        step: The step that it runs, ready for the selection of kernels.
        lowered: Its steps in the order of the graph.
        arranged: Its steps in their final order, with offsets of its operands.
    """

    step: StepGraph
    lowered: Lowered
    arranged: OrderedProgram

    def again(self, budget_bytes: int | None, share: float) -> "Part":
        """Return the program with steps that run again, to take at most a budget."""
        found = arranged(self.lowered, budget_bytes=budget_bytes, share=share)
        return replace(self, arranged=replace(found, given_bytes=self.arranged.given_bytes))


@dataclass(frozen=True, slots=True)
class Planned:
    """A step that is placed, but not yet in memory.

    Attributes:
        step: The step.
        parts: The program of the step, and the program that gathers gradients for it, if any.
        held: Tensors that stay between runs.
        memory: Bytes that the step takes.
    """

    step: StepGraph
    parts: tuple[Part, ...]
    held: StateTensors
    memory: TrainingMemory


def planned(step: StepGraph, terms: Terms) -> Planned:
    """Lower and place a step in the order that takes the least memory, within its terms.

    Raises:
        CapacityError: No plan within the limit was found, with recomputation up to `recompute`.
        GraphError: A node cannot be run.
        InputError: A name in `without` is unknown.
        LibraryError: oneDNN cannot be used.
    """
    without = [name for name in terms.without if name not in (UNARRANGED, WHOLE)]
    if "onednn" not in without:
        open_library()
    held = StateTensors(step.held)
    ways = [_ways(part, terms, without) for part in (step, step.gathering) if part]

    def memory(parts: Sequence[Part]) -> TrainingMemory:
        return _memory(step, held, parts)

    parts = _best(ways, terms, memory)
    if terms.share and UNARRANGED not in terms.without:
        parts = _with_repeats(ways, parts, terms, memory)
    found = memory(parts)
    if terms.limit_bytes is not None and found.peak_bytes > terms.limit_bytes:
        beside = found.peak_bytes - found.arena_bytes
        raise _too_large(found, terms, beside + max(map(_least_bytes, ways)))
    return Planned(step, parts, held, found)


def _ways(step: StepGraph, terms: Terms, without: Collection[str]) -> list[Part]:
    """Make the program of a step: as it is, and with large gradients in tiles, if there are any."""
    whole = replace(step, graph=rewritten(step.graph, without), gathering=None)
    lowered = _lowered(whole, terms, without)
    if UNARRANGED in terms.without:
        return [Part(whole, lowered, as_given(lowered))]
    found = [Part(whole, lowered, arranged(lowered))]
    if WHOLE not in terms.without:
        cut = step_in_tiles(whole, found[0].arranged.placement.arena_bytes)
        if cut is not None:
            lowered = _lowered(cut, terms, without)
            given_bytes = found[0].arranged.given_bytes
            made = replace(arranged(lowered), given_bytes=given_bytes)
            found.append(Part(cut, lowered, made))
    return found


def _lowered(step: StepGraph, terms: Terms, without: Collection[str]) -> Lowered:
    with library_threads(terms.threads):
        halves = terms.precision != "float32"
        lowered = select(step.graph, terms.threads, without, half_products=halves)
    lowered = updating(lowered, step.follows, step.shown)
    return lowered if terms.precision == "float32" else with_stored_halves(lowered)


def _with_repeats(
    ways: Sequence[Sequence[Part]],
    chosen: tuple[Part, ...],
    terms: Terms,
    memory: Callable[[Sequence[Part]], TrainingMemory],
) -> tuple[Part, ...]:
    """Make programs with as little recomputation as the limit requires."""
    if _fits(memory(chosen), terms.limit_bytes):
        return chosen

    def again(index: int, part: Part) -> Part:
        beside = memory((*chosen[:index], part, *chosen[index + 1 :]))
        budget = None
        if terms.limit_bytes is not None:
            budget = max(terms.limit_bytes - (beside.peak_bytes - beside.arena_bytes), 0)
        return part.again(budget, terms.share)

    repeated = [[again(index, part) for part in each] for index, each in enumerate(ways)]
    return _best(repeated, terms, memory)


def _best(
    ways: Sequence[Sequence[Part]],
    terms: Terms,
    memory: Callable[[Sequence[Part]], TrainingMemory],
) -> tuple[Part, ...]:
    """Choose a variant of each program: within the limit least recomputation, else least memory.

    The first variant of each is taken, unless others have a smaller arena or, within the limit,
    less recomputation.
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


def _memory(step: StepGraph, held: StateTensors, parts: Sequence[Part]) -> TrainingMemory:
    """Compute the memory of programs that share a block."""
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
        max(allocated_bytes(each.step.graph, each.lowered) for each in parts),
        _clipped_bytes(step),
    )


def _clipped_bytes(step: StepGraph) -> int:
    """Sum the sizes of gradients whose squares are added up."""
    return sum(
        size_bytes(value.dtype, value.static_shape)
        for node in step.graph.nodes
        if node.operator == "SquaresAdded" and (value := step.graph.value(node.inputs[0])).dtype
    )


def _fits(memory: TrainingMemory, limit_bytes: int | None) -> bool:
    return limit_bytes is not None and memory.peak_bytes <= limit_bytes


def _least_bytes(ways: Sequence[Part]) -> int:
    """Bound from below the arena of a program, however its steps run."""
    return min(least_arena_bytes(part.lowered) for part in ways)


def _too_large(memory: TrainingMemory, terms: Terms, least: int) -> CapacityError:
    """Make the error about the smallest plan that was found, with a bound on any plan's bytes."""
    limit = terms.limit_bytes or 0
    found = (
        f"No plan of a training step within {format_bytes(limit)} was found; every plan takes at "
        f"least {format_bytes(least)}. The smallest one found"
    )
    if limit < least:
        found = (
            f"A training step needs at least {format_bytes(least)} in any plan, and the limit is "
            f"{format_bytes(limit)}. The smallest plan found"
        )
    advice = "" if terms.share == inf else ", allow more recomputation (`recompute`)"
    if memory.clipped_bytes:
        advice += (
            f", leave out `clip_norm`, which keeps {format_bytes(memory.clipped_bytes)} of "
            "gradients live at once"
        )
    return CapacityError(
        f"{found} takes {format_bytes(memory.peak_bytes)}: "
        f"{format_bytes(memory.weights_bytes)} for weights, "
        f"{format_bytes(memory.state_bytes)} for the optimizer, "
        f"{format_bytes(memory.arena_bytes)} for the arena. Raise the limit to "
        f"{format_limit(memory.peak_bytes)}{advice}, or give the batch in parts (`accumulate`).",
        needed_bytes=memory.peak_bytes,
        limit_bytes=limit,
    )
