"""Runs of a decoder whose caller passes the caches from run to run, by programs of sessions.

Each run has inputs of another length, for which a program of its own would have to be made. The
programs of sessions run any length up to a context.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from tightship.engine.run.limits import Limits
from tightship.engine.run.output_buffer_pool import OutputBufferPool
from tightship.engine.state.decoder import CONTEXT_MIN, Decoder, decoder_of
from tightship.errors import CapacityError, GraphError, InputError
from tightship.model.feeds import Array
from tightship.model.row_blocks import RowBlocks
from tightship.model.session_options import SessionOptions
from tightship.model.sessions import Sessions
from tightship.model.step_programs import StepPrograms
from tightship.model.whole_caches import Rows, Step, run_over, run_padded, targets

ROWS = 1024
"""Least context of programs; four times as many for longer caches, and so on."""
LENGTHS_BEFORE = 2
"""Steps that get a program of their own before it is clear that lengths change."""
BATCHES = 16
"""Batches, and contexts of caches with fixed rows, whose programs are kept: a server joins requests
to batches of many sizes in turn."""

Kind = tuple[int, int | None]
"""Batch, and rows of caches that do not grow; None for those that do."""


@dataclass(slots=True)
class GrowingRuns:
    """Runs of a decoder, each at another length.

    Attributes:
        decoder: Returns the decoder for a batch; its context does not matter.
        programs: Returns programs of sessions for choices of a caller.
        forget: Releases programs once no run has them.
        outputs: Names of the outputs, in order.
        caches: Names of the inputs that are caches.
    """

    decoder: Callable[[int], Decoder]
    programs: Callable[[SessionOptions], StepPrograms]
    forget: Callable[[StepPrograms], None]
    outputs: tuple[str, ...]
    caches: frozenset[str]
    _decoders: dict[int, Decoder] = field(default_factory=dict)
    _steps: set[Step] = field(default_factory=set)
    """Steps that had programs of their own."""
    _kept: dict[Kind, StepPrograms] = field(default_factory=dict)
    _refused: dict[bool, int] = field(default_factory=dict)
    """Least rows that no program can have, by whether caches grow."""
    _rows: Rows | None = None
    """Rows of the last run over caches that grow."""
    _outputs: OutputBufferPool = field(default_factory=OutputBufferPool)
    _changing: threading.Lock = field(default_factory=threading.Lock)

    def run(
        self, inputs: Mapping[str, ArrayLike], outputs: Mapping[str, Array], limits: Limits
    ) -> dict[str, Array] | None:
        """Run a step, if steps of other lengths have run before, or its caches are blocks.

        Args:
            inputs: Arrays of all inputs, of the right types.
            outputs: Arrays of the caller for outputs.
            limits: Limits of the run.

        Returns:
            Outputs by name; None if a program for the shapes of the inputs has to run.
        """
        arrays = {
            name: given if isinstance(given, RowBlocks) and name in self.caches
            else np.asarray(given)
            for name, given in inputs.items()
        }  # fmt: skip
        step = self._step_of(arrays)
        if step is None:
            return None
        with self._changing:
            if len(self._steps) < LENGTHS_BEFORE and not self.has_blocks(arrays):
                self._steps.add(step)
                return None
            caches = targets(self._decoder_of(step.batch), step, arrays, outputs)
            programs = None if caches is None else self._programs_of(step)
            if programs is None or caches is None:
                return None
            rows, self._rows = self._rows, None
        if step.fixed_rows is not None:
            found = run_over(programs, arrays, caches, step, limits)
        else:
            if rows is not None and not rows.hold(programs.decoder):
                rows = None  # before others take memory
            rows = rows or Rows.of(programs.decoder)
            found = run_padded(programs, arrays, rows, step, limits, self._outputs)
            self._rows = rows
        return {name: found[name] for name in self.outputs}

    def has_blocks(self, inputs: Mapping[str, object]) -> bool:
        """Whether caches are given as blocks."""
        return any(isinstance(inputs.get(name), RowBlocks) for name in self.caches)

    def _step_of(self, arrays: Mapping[str, Array | RowBlocks]) -> Step | None:
        """Return the lengths of a step, if all inputs follow from them."""
        one = self._decoder_of(1)
        tokens, pair = arrays[one.tokens], one.caches[0].pair
        if tokens.ndim < 2 or not all(tokens.shape) or arrays[pair.past].ndim <= pair.axis:
            return None
        (batch, steps), rows = tokens.shape[:2], arrays[pair.past].shape[pair.axis]
        decoder = self._decoder_of(batch)
        seen = (arrays[name].shape[-1] for name in decoder.masks if arrays[name].ndim == 2)
        total = next(seen, rows + steps)
        is_fixed = steps <= total <= rows
        step = Step(batch, total - steps if is_fixed else rows, steps, rows if is_fixed else None)
        return step if decoder.follows(arrays, step.past, steps, step.fixed_rows) else None

    def _decoder_of(self, batch: int) -> Decoder:
        found = self._decoders.get(batch)
        if found is None:
            one = self._decoders.get(1) or self.decoder(1)
            found = one if batch == 1 else self.decoder(batch)
            if len(self._decoders) > BATCHES:
                self._decoders.clear()
            self._decoders |= {1: one, batch: found}
        return found

    def _programs_of(self, step: Step) -> StepPrograms | None:
        """Return programs that run a step; None if none can be made."""
        kind = step.batch, step.fixed_rows
        found = self._kept.get(kind)
        if found is not None and found.decoder.context >= step.past + step.steps:
            return found
        for context in step.contexts(ROWS):
            if context >= self._refused.get(step.grows, context + 1):
                continue
            options = SessionOptions(context, step.batch, rows="all", grows=step.grows)
            try:
                found = self._made(options)
            except (CapacityError, GraphError, InputError):
                self._refused[step.grows] = context
                continue
            self._keep(kind, found)
            return found
        return None

    def _made(self, options: SessionOptions) -> StepPrograms:
        """Return programs, in place of those that were made first if a limit does not hold all.

        Raises:
            CapacityError: The limit does not hold them alone.
            GraphError, InputError: They cannot be made.
        """
        while True:
            try:
                return self.programs(options)
            except CapacityError:
                if not self._kept:
                    raise
                self.release_unused()
                self.forget(self._kept.pop(next(iter(self._kept))))

    def _keep(self, kind: Kind, programs: StepPrograms) -> None:
        """Keep programs, and forget those that they replace or that were made first."""
        gone = [self._kept.pop(kind, None)]
        self._kept[kind] = programs
        if len(self._kept) > BATCHES:
            gone.append(self._kept.pop(next(iter(self._kept))))
        for each in gone:
            if each is not None:
                self.forget(each)

    def release_unused(self) -> None:
        """Release rows and results that nothing uses."""
        self._rows = None
        self._outputs.release()


def growing_runs_of(sessions: Sessions) -> GrowingRuns | None:
    """Return the runs of a decoder's loops; None for models without caches that can grow."""
    file, copies = sessions.file(), 3  # rows of programs, and the caller's before and after
    declared = file.declared

    def decoder(batch: int) -> Decoder:
        return decoder_of(file.graphs.read, declared, CONTEXT_MIN, batch)

    def programs(options: SessionOptions) -> StepPrograms:
        return sessions.programs_for(options, copies)

    try:
        found = decoder(1)
    except (GraphError, InputError):
        return None
    results = {found.logits, *(cache.pair.present for cache in found.caches)}
    if results != set(declared.outputs) or not all(cache.grows for cache in found.caches):
        return None
    caches = frozenset(cache.pair.past for cache in found.caches)
    return GrowingRuns(decoder, programs, sessions.forget, tuple(declared.outputs), caches)
