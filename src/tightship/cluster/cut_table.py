"""Tabulates where a program can be cut, what crosses each cut, and least bytes of each stage.

    step      0    1    2    3        a value written in step 1 and read in step 3 crosses the
    cut    0    1    2    3    4      cuts 2 and 3; a stage [1, 3) sends it, [3, 4) receives it

Cut t lies before step t. A cut is left out if a value is written on both sides of it, or if a view
or its source is alive there, because no stage would then have them whole.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship.engine.plan.footprint import HEAP_BYTES, STEP_BYTES
from tightship.engine.program.program import Lowered, LoweredStep, Operand, Space
from tightship.engine.program.schedule import ALIGNMENT
from tightship.planner import AliasKind

Integers = NDArray[np.int64]
NEVER = -1


@dataclass(frozen=True, slots=True, eq=False)
class CutTable:
    """Cuts of a program in order; stage `(a, b)` has the steps `[cuts[a], cuts[b])`.

    Attributes:
        cuts: Steps before which the program can be cut, from 0 to the number of steps; shape (p,).
        crossing_bytes: Bytes of values that cross each cut; shape (p,).
        least_bytes: Lower bound on the plan of each stage: its weights, what it receives and sends,
            live bytes, and runtime; shape (p, p), meaningful for a < b.
    """

    cuts: Integers
    crossing_bytes: Integers
    least_bytes: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Lifetimes:
    """Steps that touch each slot, `NEVER` if there is none; arrays of shape (slots,).

    Attributes:
        size_bytes: Sizes, rounded up to the alignment.
        first_write: First step that writes it; `NEVER` for inputs of the program.
        last_write: Last step that writes it.
        last_read: Last step that reads it, past the last step for outputs of the program.
    """

    size_bytes: Integers
    first_write: Integers
    last_write: Integers
    last_read: Integers


def slots_of(operands: Iterable[Operand]) -> Iterator[int]:
    """Yield the slots of operands in the arena or with the caller."""
    for operand in operands:
        if operand.space is Space.ARENA or operand.space is Space.EXTERNAL:
            yield operand.slot


def weights_of(step: LoweredStep) -> frozenset[int]:
    """Return the indices of the packed weights that a step reads."""
    return frozenset(each.slot for each in step.reads if each.space is Space.WEIGHTS)


def lifetimes_of(lowered: Lowered) -> Lifetimes:
    """Find the steps that touch each slot of a program."""
    count = len(lowered.slots)
    sizes = np.array([-(-slot.size_bytes // ALIGNMENT) * ALIGNMENT for slot in lowered.slots])
    first, last, read = (np.full(count, NEVER, np.int64) for _ in range(3))
    for index, step in enumerate(lowered.steps):
        for slot in slots_of(step.reads):
            read[slot] = index
        for slot in slots_of(step.writes):
            first[slot] = index if first[slot] == NEVER else first[slot]
            last[slot] = index
    for slot in slots_of(lowered.outputs.values()):
        read[slot] = len(lowered.steps)
    return Lifetimes(sizes.astype(np.int64), first, last, read)


def table_of(lowered: Lowered) -> CutTable:
    """Tabulate the cuts of a program whose values all have known sizes.

    Complexity: O(p^2 n) for p cuts and n steps, vectorised over the steps.
    """
    found = lifetimes_of(lowered)
    cuts = np.flatnonzero(_allowed(lowered, found)).astype(np.int64)
    crossing = np.array([_crossing_bytes(found, int(cut), len(lowered.steps)) for cut in cuts])
    least = np.zeros((len(cuts), len(cuts)), np.int64)
    for index in range(len(cuts) - 1):
        least[index, index + 1 :] = list(_stages_from(lowered, found, cuts[index:]))
    return CutTable(cuts, crossing.astype(np.int64), least)


def _allowed(lowered: Lowered, found: Lifetimes) -> NDArray[np.bool_]:
    steps = len(lowered.steps)
    allowed = np.ones(steps + 1, bool)
    for first, last in zip(found.first_write, found.last_write, strict=True):
        if first != NEVER:
            allowed[first + 1 : last + 1] = False
    for step in lowered.steps:
        for sharing in step.sharing:
            if sharing.kind is AliasKind.VIEW:
                pair = [sharing.output, sharing.input]
                start = int(found.first_write[pair].min())
                stop = int(found.last_read[pair].max())
                allowed[max(start, 0) + 1 : min(stop, steps - 1) + 1] = False
    return allowed


def _crossing_bytes(found: Lifetimes, cut: int, steps: int) -> int:
    """Sum the computed values that are written before a cut and read by a step after it."""
    if cut in (0, steps):
        return 0
    is_written = (found.first_write != NEVER) & (found.first_write < cut)
    return int(found.size_bytes[is_written & _is_read_after(found, cut, steps)].sum())


def _is_read_after(found: Lifetimes, cut: int, steps: int) -> NDArray[np.bool_]:
    return (found.last_read >= cut) & (found.last_read <= steps)


def _stages_from(lowered: Lowered, found: Lifetimes, cuts: Integers) -> Iterator[int]:
    """Yield the least bytes of the stages that start at the first cut and end at each other."""
    start = touched = int(cuts[0])
    raw_bytes = np.array([slot.size_bytes for slot in lowered.slots], np.int64)
    scratch = np.array([step.scratch_bytes for step in lowered.steps], np.int64)
    in_arena = np.array([not slot.external for slot in lowered.slots], bool)
    is_apart = in_arena & ~_overlapping(lowered)
    is_own = found.first_write >= start
    received = np.zeros(len(lowered.slots), bool)
    counted = np.zeros(len(lowered.slots), bool)
    live = np.zeros(len(lowered.steps) + 1, np.int64)  # between steps, as cuts are
    weights: set[int] = set()
    packed = 0
    for stop in map(int, cuts[1:]):
        for step in lowered.steps[touched:stop]:
            further = weights_of(step) - weights
            weights |= further
            packed += _packed_bytes(lowered, further)
            received[[slot for slot in slots_of(step.reads) if not is_own[slot]]] = True
        touched = stop
        ended = is_own & (found.first_write < stop) & (found.last_read < stop)
        for slot in np.flatnonzero(ended & is_apart & ~counted):
            live[found.first_write[slot] + 1 : found.last_read[slot] + 1] += found.size_bytes[slot]
        counted |= ended
        sent = is_own & (found.first_write < stop) & ~(ended & in_arena)
        beside = np.maximum(live[start:stop], live[start + 1 : stop + 1])
        arena = int((beside + scratch[start:stop]).max())
        runtime = HEAP_BYTES + (stop - start) * STEP_BYTES
        yield (packed + int(raw_bytes[received | sent].sum()) + arena + runtime)


def _overlapping(lowered: Lowered) -> NDArray[np.bool_]:
    """Return whether each slot may lie within the bytes of another that lives at the same time."""
    found = np.zeros(len(lowered.slots), bool)
    for step in lowered.steps:
        for sharing in step.sharing:
            if sharing.kind in (AliasKind.VIEW, AliasKind.PART):
                found[sharing.input] = True
    return found


def _packed_bytes(lowered: Lowered, weights: Iterable[int]) -> int:
    return sum(-(-lowered.weights[each].size_bytes // ALIGNMENT) * ALIGNMENT for each in weights)
