"""Runs of programs of sessions over the caches that a caller passes to a run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tightship.engine.run.limits import Limits
from tightship.engine.run.output_buffer_pool import OutputBufferPool
from tightship.engine.state.cache_rows import CacheRows
from tightship.engine.state.decoder import Cache, Decoder
from tightship.model.row_blocks import Array, RowBlocks
from tightship.model.step_arrays import BoundCaches
from tightship.model.step_programs import StepPrograms, pieces


@dataclass(frozen=True, slots=True)
class Step:
    """Lengths of a run.

    Attributes:
        batch: Rows of the batch.
        past: Rows of the caches in use before.
        steps: New tokens.
        fixed_rows: Rows of caches that have room for the new ones; None if the caches grow.
    """

    batch: int
    past: int
    steps: int
    fixed_rows: int | None

    @property
    def grows(self) -> bool:
        """Whether the caches have more rows after the run."""
        return self.fixed_rows is None

    def contexts(self, least: int) -> Iterator[int]:
        """Contexts of programs that can run the step, the best first."""
        if self.fixed_rows is not None:
            yield self.fixed_rows
            return
        context = least
        while context < self.past + self.steps:
            context *= 4
        while context >= self.past + self.steps:
            yield context
            context //= 2


@dataclass(slots=True)
class Rows:
    """Caches of a context's rows, for a batch and all smaller ones.

    Attributes:
        arrays: The caches of the largest batch.
        used: Rows that may differ from zero, of each part along the first axis.
    """

    arrays: Mapping[str, Array]
    used: Array

    @staticmethod
    def of(decoder: Decoder) -> "Rows":
        """Return caches of zeros, whose pages become resident as rows are written.

        Raises:
            OutOfMemoryError: The system refuses memory.
        """
        used = np.zeros(_part_count(decoder), np.int64)
        return Rows(CacheRows(decoder.caches, reserved=True).arrays, used)

    def hold(self, decoder: Decoder) -> bool:
        """Whether caches of a decoder's context and batch are among these."""
        return all(
            self.arrays[c.pair.past].shape[0] >= c.shape[0]
            and self.arrays[c.pair.past].shape[1:] == c.shape[1:]
            for c in decoder.caches
        )

    def filled(
        self, decoder: Decoder, arrays: Mapping[str, Array | RowBlocks], past: int, steps: int
    ) -> dict[str, Array]:
        """Return a decoder's caches with the caller's rows, all others zero.

        Args:
            decoder: Decoder whose caches are among these.
            arrays: The caller's inputs.
            past: Rows of the caller's caches.
            steps: Rows that a run will write behind them.
        """
        parts = slice(_part_count(decoder))
        used = max(past, int(self.used[parts].max()))
        self.used[parts] = past + steps
        caches = {}
        for cache in decoder.caches:
            name = cache.pair.past
            caches[name] = self.arrays[name][: cache.shape[0]]
            copy(arrays[name], part(cache, caches[name], 0, past))
            part(cache, caches[name], past, used)[...] = 0
        return caches


def _part_count(decoder: Decoder) -> int:
    return max(cache.shape[0] for cache in decoder.caches)


def targets(
    decoder: Decoder,
    step: Step,
    arrays: Mapping[str, Array | RowBlocks],
    outputs: Mapping[str, Array],
) -> dict[str, Array] | None:
    """Return the caller's arrays that caches are written over, by the names of caches.

    Args:
        decoder: Decoder of any context.
        step: Lengths of the run.
        arrays: The caller's inputs.
        outputs: The caller's arrays for outputs.

    Returns:
        None if an output goes elsewhere, which programs for the shapes of the inputs do.
    """
    found: dict[str, Array] = {}
    for cache in decoder.caches:
        if cache.pair.present in outputs:
            found[cache.pair.past] = outputs[cache.pair.present]
    if len(found) < len(outputs) or (found and step.grows):
        return None
    return (
        found if all(_is_in_place(array, arrays[past]) for past, array in found.items()) else None
    )


def _is_in_place(output: Array, past: Array | RowBlocks) -> bool:
    """Whether an output is an input's array, which a program can write."""
    if isinstance(past, RowBlocks):
        return False
    same = output.__array_interface__["data"] == past.__array_interface__["data"]
    flags = output.flags
    return (
        same and output.shape == past.shape and output.dtype == past.dtype
        and output.dtype.isnative and flags.c_contiguous and flags.writeable
    )  # fmt: skip


def run_over(
    programs: StepPrograms, arrays: Mapping[str, Array | RowBlocks],
    caches: Mapping[str, Array], step: Step, limits: Limits,
) -> dict[str, Array]:  # fmt: skip
    """Run a step over caches that have room for its rows.

    Args:
        programs: Programs of these rows.
        arrays: The caller's inputs.
        caches: The caller's arrays that are written over; the others are copied first.
        step: Lengths of the run.
        limits: Limits of the run.
    """
    decoder, rows = programs.decoder, dict(caches)
    for cache in decoder.caches:
        name = cache.pair.past
        if name not in rows:
            rows[name] = np.empty(arrays[name].shape, cache.dtype.numpy)
            copy(arrays[name], rows[name])
    results = {decoder.logits: _logits(programs, arrays, rows, step, limits)}
    return results | {c.pair.present: rows[c.pair.past] for c in decoder.caches}


def run_padded(
    programs: StepPrograms, arrays: Mapping[str, Array | RowBlocks], rows: Rows,
    step: Step, limits: Limits, kept: OutputBufferPool,
) -> dict[str, Array]:  # fmt: skip
    """Run a step over caches that grow: they are copied into rows of the context, and back.

    Args:
        programs: Programs of the context.
        arrays: The caller's inputs.
        rows: Rows that hold the programs' caches.
        step: Lengths of the run.
        limits: Limits of the run.
        kept: Provides the caches of the result.
    """
    decoder, after = programs.decoder, step.past + step.steps
    caches = rows.filled(decoder, arrays, step.past, step.steps)
    results = {decoder.logits: _logits(programs, arrays, caches, step, limits)}
    for cache in decoder.caches:
        name, found = cache.pair.present, part(cache, caches[cache.pair.past], 0, after)
        results[name] = kept.array(name, found.shape, found.dtype)
        results[name][...] = found
    return results


def _logits(
    programs: StepPrograms, arrays: Mapping[str, Array | RowBlocks], rows: Mapping[str, Array],
    step: Step, limits: Limits,
) -> Array:  # fmt: skip
    """Append a step's rows to caches, and return the logits of all its tokens."""
    tokens = np.asarray(arrays[programs.decoder.tokens])
    found, done, caches = [], 0, BoundCaches(rows)
    for size in pieces(step.steps, programs.chunk):
        given = tokens[:, done : done + size]
        found.append(programs.run(size, given, step.past + done, caches, limits))
        done += size
    return found[0] if len(found) == 1 else np.concatenate(found, axis=1)


def part(cache: Cache, array: Array, start: int, stop: int) -> Array:
    """Return a view of rows `[start, stop)` of a cache."""
    return array[(slice(None),) * cache.pair.axis + (slice(start, stop),)]


def copy(given: Array | RowBlocks, target: Array) -> None:
    """Copy an array, or blocks one by one, to a target of its shape."""
    if isinstance(given, RowBlocks):
        given.copy_to(target)
    else:
        target[...] = given
