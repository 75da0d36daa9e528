"""Runs a training step in two parts, forward and backward pass, in one arena for both."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest
from typing import Any

from numpy.typing import ArrayLike, NDArray

from tightship._core import HostResource
from tightship.engine.arenas.arena_group import ArenaGroup, GroupBackings
from tightship.engine.arenas.arena_pool import ArenaBacking
from tightship.engine.library import library_threads, open_library, release_unused
from tightship.engine.lower import rewritten, select
from tightship.engine.plan.ordered_program import arranged
from tightship.engine.plan.placement import Placement
from tightship.engine.program.program import Lowered, LoweredStep, Operand, Space
from tightship.engine.run.executable import Executable, NativeSegment, Segment, build
from tightship.engine.run.executor import execute
from tightship.engine.run.limits import Limits
from tightship.engine.weights.weight_store import WeightStore
from tightship.errors import GraphError, InputError
from tightship.graph import Graph
from tightship.model import feeds
from tightship.training.planned import Terms
from tightship.training.release_points import release_points

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """Inputs and outputs that belong to one part of a step.

    Attributes:
        early: Outputs of the forward pass.
        late: Inputs that exist only when the backward pass begins.
    """

    early: tuple[str, ...]
    late: tuple[str, ...]


@dataclass(slots=True)
class SplitProgram:
    """The programs of a step until it is closed, without a reference to the step.

    Attributes:
        backings: The step's share of the arenas.
        inputs: Operands of the inputs by name.
        outputs: Operands of the outputs by name.
        whole: Forward and backward pass; None once closed.
        forward: The forward pass.
        backward: The backward pass, in parts between which memory is released.
    """

    backings: GroupBackings
    inputs: Mapping[str, Operand]
    outputs: Mapping[str, Operand]
    whole: Executable | None
    forward: Executable | None
    backward: Sequence[Executable]

    def close(self) -> None:
        """Release the arenas; weights and kernels go with the last reference to them."""
        self.backings.close()
        self.inputs, self.outputs = {}, {}
        self.whole = self.forward = None
        self.backward = ()


class SplitStep:
    """A program whose first steps are the forward pass and whose last are the backward pass.

    Both passes are planned as one: values that the backward pass reads stay in the arena in the
    layout in which they were written, and their bytes are reused as soon as they have been read.

    Attributes:
        program: The programs; the owner of the step closes them.
        arena_bytes: Bytes of a step from the start of its forward pass to the end of its backward
            pass.
        saved: Inputs that the backward pass reads again in the caller's memory, then outputs of the
            forward pass that it reads there.
    """

    def __init__(self, graph: Graph, parts: Parts, terms: Terms, arenas: ArenaGroup) -> None:
        """Lower, place and compile the step.

        Args:
            graph: Forward and backward pass, with known shapes.
            parts: Early outputs and late inputs.
            terms: Threads, and the share of operations to compute again.
            arenas: Arenas that steps run in.

        Raises:
            GraphError: A node has no kernel, or a shape depends on data.
            OutOfMemoryError: The system refuses memory for constants.
        """
        open_library()
        with library_threads(terms.threads):
            lowered = select(rewritten(graph, ()), terms.threads, ())
        placement = arranged(_forward_first(lowered, parts), share=terms.share).placement
        self._parts, lowered = parts, placement.lowered
        self._count = _forward_count(lowered, parts)
        read = _read(lowered, parts, self._count) - {*parts.late}
        self.saved = tuple([n for n in (*lowered.inputs, *parts.early) if n in read])
        self._kept = _bytes_kept(placement, self._count)
        release_unused()
        whole = build(placement, WeightStore(HostResource()))
        release_unused()
        self._points = release_points(placement, self._count)
        cuts = [self._count, *(point.step for point in self._points)]
        forward, *backward = _cut(whole, cuts)
        self.arena_bytes = whole.arena_bytes
        self.program = SplitProgram(
            GroupBackings(arenas), lowered.inputs, lowered.outputs, whole, forward, backward
        )
        self.program.backings.resize(self.arena_bytes, None)

    def forward(self, inputs: Mapping[str, ArrayLike], outputs: Mapping[str, Array]) -> "BegunStep":
        """Run the forward pass.

        Args:
            inputs: An array for each input except the late ones.
            outputs: Arrays that the early outputs are written into.

        Returns:
            The step, which keeps its arena until it ends.

        Raises:
            InputError: A name, dtype or shape does not fit.
            OutOfMemoryError: The system refuses an arena.
        """
        wanted = {n: o for n, o in self.program.inputs.items() if n not in self._parts.late}
        external = feeds.bind_inputs(wanted, inputs) | self._written(outputs)
        program, whole = self.program, self._whole
        begun = BegunStep(self, program.backings, program.backings.reserve(whole, Limits(), 0))
        is_done = False
        try:
            assert program.forward is not None
            self._run(begun.room, program.forward, external)
            is_done = True
        finally:
            if not is_done:
                begun.end()
        return begun

    def backward(
        self,
        begun: "BegunStep",
        inputs: Mapping[str, ArrayLike],
        outputs: Mapping[str, Array],
        *,
        keeps: bool,
    ) -> None:
        """Run the backward pass of a step that has begun, and end the step unless it is kept.

        Args:
            begun: The step, as `forward` returned it.
            inputs: Arrays for the late inputs, and for those in `saved`.
            outputs: Arrays that all other outputs are written into.
            keeps: Whether the backward pass may run again; the values it reads are then copied
                before the run and restored after it.

        Raises:
            InputError: A name, dtype or shape does not fit, or the step has ended.
        """
        if begun.has_ended:
            raise InputError(
                "The step has ended: its memory was released when its backward pass ran. Keep it "
                "for another run, in torch by `backward(retain_graph=True)`."
            )
        known = {**self.program.outputs, **self.program.inputs}
        wanted = {name: known[name] for name in (*self._parts.late, *self.saved) if name in known}
        external = feeds.bind_inputs(wanted, inputs) | self._written(outputs)
        memory = begun.room.range.array()
        copies = [memory[start:stop].copy() for start, stop in self._kept] if keeps else []
        try:
            for part, point in zip_longest(self.program.backward, self._points):
                self._run(begun.room, part, external)
                for start, stop in point.ranges if point else ():
                    begun.room.range.discard(start, stop)
        finally:
            for (start, stop), copy in zip(self._kept, copies, strict=False):
                memory[start:stop] = copy
            if not keeps:
                begun.end()

    def _written(self, outputs: Mapping[str, Array]) -> dict[int, Array]:
        return {self.program.outputs[name].slot: array for name, array in outputs.items()}

    @property
    def _whole(self) -> Executable:
        whole = self.program.whole
        if whole is None:
            raise InputError("The step is closed; compile the graph again.")
        return whole

    def _run(self, room: ArenaBacking, part: Executable, external: Mapping[int, Array]) -> None:
        execute(part, room.arena(self._whole), external, {}, Limits())

    @property
    def kept_bytes(self) -> int:
        """Bytes of the arena that the backward pass reads as the forward pass left them."""
        return sum(stop - start for start, stop in self._kept)


@dataclass(slots=True, eq=False, weakref_slot=True)
class BegunStep:
    """A step whose forward pass has run, with the arena that it keeps until it ends."""

    step: SplitStep
    backings: GroupBackings
    room: ArenaBacking
    has_ended: bool = field(default=False)

    def end(self) -> None:
        """Release the arena. Further calls have no effect."""
        if not self.has_ended:
            self.has_ended = True
            self.backings.release(self.room, 0)


def _forward_first(lowered: Lowered, parts: Parts) -> Lowered:
    """Move steps that depend on late inputs to the end.

    These steps also read the early outputs, so that every order of steps keeps them behind.

    Raises:
        GraphError: A value has a size that depends on data.
    """
    late = _late_slots(lowered, parts)
    gates = tuple([lowered.outputs[name] for name in parts.early])
    first: list[LoweredStep] = []
    behind: list[LoweredStep] = []
    dependent = set(late)
    for step in lowered.steps:
        if any(operand.space is Space.OBJECT for operand in (*step.reads, *step.writes)):
            raise GraphError(
                f"Step `{step.name}` ({step.operator}) has values whose size depends on data; a "
                "training step in two parts cannot keep such values between the parts."
            )
        if dependent.isdisjoint(_slots(step.reads)):
            first.append(step)
            continue
        dependent.update(_slots(step.writes))
        # The first steps that read late inputs wait for all early outputs; the others follow them.
        is_gated = not late.isdisjoint(_slots(step.reads))
        behind.append(step._replace(reads=(*step.reads, *gates)) if is_gated else step)
    early = {operand.slot for operand in gates}
    assert early.isdisjoint(_slots(operand for step in behind for operand in step.writes))
    return lowered._replace(steps=(*first, *behind))


def _late_slots(lowered: Lowered, parts: Parts) -> set[int]:
    return {lowered.inputs[name].slot for name in parts.late if name in lowered.inputs}


def _slots(operands: Iterable[Operand]) -> set[int]:
    """Return the slots of operands that are not weights."""
    return {operand.slot for operand in operands if operand.space is not Space.WEIGHTS}


def _forward_count(lowered: Lowered, parts: Parts) -> int:
    """Return the number of steps up to the last that writes an early output."""
    early = {lowered.outputs[name].slot for name in parts.early}
    writing = [i for i, step in enumerate(lowered.steps) if early & _slots(step.writes)]
    return 1 + max(writing, default=-1)


def _read(lowered: Lowered, parts: Parts, first: int) -> set[str]:
    """Return names of inputs, and of early outputs, that steps from `first` on read."""
    late = _late_slots(lowered, parts)
    read: set[int] = set()
    for step in lowered.steps[first:]:
        is_gated = not late.isdisjoint(_slots(step.reads))
        own = step.reads[: len(step.reads) - len(parts.early)] if is_gated else step.reads
        read |= _slots(own)
    named = {**lowered.inputs, **{name: lowered.outputs[name] for name in parts.early}}
    return {name for name, operand in named.items() if operand.slot in read}


def _bytes_kept(placement: Placement, first: int) -> list[tuple[int, int]]:
    """Return ranges of the arena that steps from `first` on read as earlier steps left them."""
    steps, plan = placement.lowered.steps, placement.schedule_plan
    written = _slots(operand for step in steps[:first] for operand in step.writes)
    read = _slots(operand for step in steps[first:] for operand in step.reads)
    ranges: list[tuple[int, int]] = []
    for slot in written & read:
        offset = plan.value_offset(slot)
        if offset is not None:
            ranges.append((offset, offset + placement.lowered.slots[slot].size_bytes))
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        else:
            joined.append((start, stop))
    return joined


def _cut(whole: Executable, cuts: Sequence[int]) -> list[Executable]:
    """Cut the steps into parts, before the steps of the given increasing numbers."""
    parts: list[list[Segment]] = [[] for _ in range(len(cuts) + 1)]
    done = 0
    for segment in whole.segments:
        if not isinstance(segment, NativeSegment):
            parts[bisect_right(cuts, done)].append(segment)
            done += 1
            continue
        stop = done + segment.last - segment.first
        edges = [done, *(cut for cut in cuts if done < cut < stop), stop]
        for start, end in pairwise(edges):
            shift = segment.first - done
            parts[bisect_right(cuts, start)].append(NativeSegment(start + shift, end + shift))
        done = stop
    return [replace(whole, segments=tuple(part)) for part in parts]
