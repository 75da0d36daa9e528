"""Runs of programs of sessions over the caches that a caller passes to a run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tightship.engine.run.limits import Limits
from tightship.engine.state.decoder import Cache, Decoder
from tightship.model.feeds import Array
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
    """Caches of a context's rows, zero from row `used` on."""

    arrays: Mapping[str, Array]
    used: int = 0

    @staticmethod
    def of(decoder: Decoder) -> "Rows":
        """Return caches of zeros, whose pages become resident as rows are written."""
        return Rows({c.pair.past: np.zeros(c.shape, c.dtype.numpy) for c in decoder.caches})

    def fit(self, decoder: Decoder) -> bool:
        """Whether the caches are those of a decoder's context and batch."""
        return all(self.arrays[c.pair.past].shape == c.shape for c in decoder.caches)


def targets(
    decoder: Decoder, step: Step, arrays: Mapping[str, Array], outputs: Mapping[str, Array]
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


def _is_in_place(output: Array, past: Array) -> bool:
    """Whether an output is an input's array, which a program can write."""
    same = output.__array_interface__["data"] == past.__array_interface__["data"]
    flags = output.flags
    return (
        same and output.shape == past.shape and output.dtype == past.dtype
        and output.dtype.isnative and flags.c_contiguous and flags.writeable
    )  # fmt: skip


def run_over(
    programs: StepPrograms, arrays: Mapping[str, Array], caches: Mapping[str, Array],
    step: Step, limits: Limits,
) -> dict[str, Array]:  # fmt: skip
    """Run a step over caches that have room for its rows.

    Args:
        programs: Programs of these rows.
        arrays: The caller's inputs.
        caches: The caller's arrays that are written over; the others are copied first.
        step: Lengths of the run.
        limits: Limits of the run.
    """
    decoder = programs.decoder
    rows = {
        c.pair.past: caches.get(
            c.pair.past, np.array(arrays[c.pair.past], c.dtype.numpy, order="C")
        )
        for c in decoder.caches
    }
    results = {decoder.logits: _logits(programs, arrays[decoder.tokens], rows, step, limits)}
    return results | {c.pair.present: rows[c.pair.past] for c in decoder.caches}


def run_padded(
    programs: StepPrograms, arrays: Mapping[str, Array], rows: Rows, step: Step, limits: Limits
) -> dict[str, Array]:
    """Run a step over caches that grow: they are copied into rows of the context, and back."""
    decoder, past, after = programs.decoder, step.past, step.past + step.steps
    for cache in decoder.caches:
        place = rows.arrays[cache.pair.past]
        _part(cache, place, 0, past)[...] = arrays[cache.pair.past]
        _part(cache, place, past, max(past, rows.used))[...] = 0
    rows.used = after
    results = {decoder.logits: _logits(programs, arrays[decoder.tokens], rows.arrays, step, limits)}
    for cache in decoder.caches:
        results[cache.pair.present] = _part(cache, rows.arrays[cache.pair.past], 0, after).copy()
    return results


def _logits(
    programs: StepPrograms, tokens: Array, rows: Mapping[str, Array], step: Step, limits: Limits
) -> Array:
    """Append a step's rows to caches, and return the logits of all its tokens."""
    found, done, caches = [], 0, BoundCaches(rows)
    for size in pieces(step.steps, programs.chunk):
        part = tokens[:, done : done + size]
        found.append(programs.run(size, part, step.past + done, caches, limits))
        done += size
    return found[0] if len(found) == 1 else np.concatenate(found, axis=1)


def _part(cache: Cache, array: Array, start: int, stop: int) -> Array:
    return array[(slice(None),) * cache.pair.axis + (slice(start, stop),)]
