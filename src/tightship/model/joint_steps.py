"""Steps of several sessions of one model at once: a token of each, in one run."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from operator import is_not
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.engine.cache.bounds import Bounds
from tightship.engine.cache.program_cache import ProgramCache
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.plan.footprint import program_bytes
from tightship.engine.program.program import Lowered
from tightship.engine.run.arena import FixedArrays
from tightship.engine.run.executor import execute
from tightship.engine.run.limits import Limits
from tightship.engine.run.output_buffer_pool import OutputBufferPool
from tightship.engine.run.overwriting import SlotUses
from tightship.engine.state.pairs import named
from tightship.errors import GraphError, InputError
from tightship.model import feeds
from tightship.model.feeds import Array
from tightship.model.session import Session
from tightship.model.step_arrays import PAST_LENGTH
from tightship.model.step_programs import StepPrograms


@dataclass(slots=True)
class JointSteps:
    """Programs for a token of each of 2, 4, ... sessions, over the weights of their model.

    Attributes:
        programs: Programs of the sessions.
    """

    programs: StepPrograms
    _made: dict[int, "_Joint"] = field(default_factory=dict)
    _planned: dict[int, CompiledModel] = field(default_factory=dict)
    _making: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def of(session: Session) -> "JointSteps":
        """Return those of the sessions that have the programs of one."""
        return JointSteps(session._programs)

    def planned_bytes(self, count: int) -> int:
        """Return the bytes of the program for some sessions, beside what their steps take anyway.

        Raises:
            GraphError: The model has no such program.
        """
        placement = self._compiled(count).placement
        caches = 2 * count * self.programs.decoder.state_bytes
        over = max(placement.arena_bytes - self.programs.arena_bytes(), 0)
        is_stored = self.programs.stored is not None
        steps = program_bytes(placement.lowered, is_stored=is_stored)
        return over + steps + max(placement.io_bytes - caches, 0)

    def make(self, count: int) -> None:
        """Make the program for some sessions, so that no step waits for it.

        Raises:
            GraphError: The model has no such program.
            OutOfMemoryError: The system refuses memory.
        """
        self._joint(count)

    def step(
        self, sessions: Sequence[Session], tokens: Sequence[int], limits: Limits | None = None
    ) -> NDArray[Any]:
        """Append a token to each of 2, 4, ... sessions; return their logits `[count, vocabulary]`.

        After an error the sessions are as they were.

        Raises:
            CapacityError: The pool has too few free pages.
            GraphError: The model has no such program.
            InputError: A session has no room, is of other programs, or another thread uses it.
            StoppedError, DeadlineError, OutOfMemoryError: As from a step.
        """
        joint, given = self._joint(len(sessions)), Limits() if limits is None else limits
        known: list[list[int] | None] = []
        with ExitStack() as using:
            for session in sessions:
                known.append(session._known())
                using.enter_context(session._used())
                self._check(session)
            for session in sessions:
                session._compute_again(given, 1)
            starts = [session._state.length for session in sessions]
            try:
                for session, start in zip(sessions, starts, strict=True):
                    session._reach(start, start + 1)
                found = self._run(joint, sessions, tokens, given)
            except BaseException:
                for session, start in zip(sessions, starts, strict=True):
                    session._rows.clear(start, start + 1)
                raise
            for session, token, before in zip(sessions, tokens, known, strict=True):
                session._appended(np.array([[token]], self._token_type))
                session._note(before, [token])
        return found

    @property
    def _token_type(self) -> "np.dtype[Any]":
        decoder = self.programs.decoder
        return decoder.types[decoder.tokens].numpy

    def _check(self, session: Session) -> None:
        if session._programs is not self.programs:
            raise InputError("The sessions of a joint step have different programs.")
        if session._state.length + 1 > session.context:
            raise InputError(
                f"The session has {session.length} tokens, as many as its context; truncate or "
                "reset it."
            )

    def _run(
        self, joint: "_Joint", sessions: Sequence[Session], tokens: Sequence[int], limits: Limits
    ) -> Array:
        name = self.programs.decoder.tokens
        inputs: dict[str, Array] = {name: np.array([tokens], self._token_type)}
        for i, session in enumerate(sessions):
            inputs[named(PAST_LENGTH, i)] = np.array([session._state.length], np.int64)
        program = joint.program
        with program.reserved(program.first_key, limits) as (made, arena):
            fed = feeds.bind_besides(joint.besides, inputs, joint.kept)
            fixed = joint.fixed([session._rows.arrays for session in sessions])
            execute(made.executable, arena, fed.external, fed.objects, limits, fixed=fixed)
        logits: Array = np.asarray(fed.external[joint.logits])
        rows: Array = logits[0]
        return rows

    def _joint(self, count: int) -> "_Joint":
        found = self._made.get(count)
        if found is not None:
            return found
        prepared = self._compiled(count)
        with self._making:
            if count not in self._made:
                bounds = Bounds(arena_pool=self.programs.arenas)
                made = ProgramCache(prepared, bounds, packed=self.programs.packed)
                self._made[count] = _Joint.of(made, self.programs, count)
                self._planned.pop(count, None)
            return self._made[count]

    def _compiled(self, count: int) -> CompiledModel:
        """Compile the program for some sessions, once.

        Raises:
            GraphError: The model has no such program.
        """
        with self._making:
            if count not in self._planned:
                self._planned[count] = self._compile(count)
            return self._planned[count]

    def _compile(self, count: int) -> CompiledModel:
        programs = self.programs
        prepared = None
        if programs.decoder.batch == 1 and programs.appends:
            prepared = programs.compiled_joint(count)
        if prepared is None:
            raise GraphError(f"`{programs.name}` has no program for several sessions.")
        _check_appends(prepared.placement.lowered, programs, count)
        return prepared

    def close(self) -> None:
        """Release the programs."""
        with self._making:
            for joint in self._made.values():
                joint.program.close()
                joint.kept.release()
            self._made.clear()
            self._planned.clear()


@dataclass(slots=True)
class _Joint:
    """Program for some sessions.

    Attributes:
        program: The program.
        places: Number of the session and name of its cache, by slot.
        logits: Slot of the logits.
        besides: Inputs and outputs but caches.
        kept: Arrays of logits that are used again.
    """

    program: ProgramCache
    places: Mapping[int, tuple[int, str]]
    logits: int
    besides: feeds.Besides
    kept: OutputBufferPool = field(default_factory=OutputBufferPool)
    _bound: tuple[list[Mapping[str, Array]], FixedArrays] | None = None

    @staticmethod
    def of(program: ProgramCache, programs: StepPrograms, count: int) -> "_Joint":
        """Find where a program has the caches."""
        lowered, places = program.first_lowered, dict[int, tuple[int, str]]()
        for past, present, key in _pairs(lowered, programs, count):
            places[lowered.inputs[past].slot] = places[lowered.outputs[present].slot] = key
        logits = lowered.outputs[programs.decoder.logits].slot
        return _Joint(program, places, logits, feeds.Besides.of(lowered, places))

    def fixed(self, caches: Sequence[Mapping[str, Array]]) -> FixedArrays:
        """Return the caches of sessions by the slots of the program."""
        known = () if self._bound is None else self._bound[0]
        if len(known) != len(caches) or any(map(is_not, known, caches)):
            arrays = {slot: caches[i][name] for slot, (i, name) in self.places.items()}
            self._bound = list(caches), FixedArrays(arrays)
        assert self._bound is not None
        return self._bound[1]


def _pairs(
    lowered: Lowered, programs: StepPrograms, count: int
) -> list[tuple[str, str, tuple[int, str]]]:
    """Return input and output of each cache, with its session and its name."""
    pairs = [cache.pair for cache in programs.decoder.caches]
    return [
        (named(pair.past, i), named(pair.present, i), (i, pair.past))
        for i in range(count)
        for pair in pairs
        if named(pair.past, i) in lowered.inputs
    ]


def _check_appends(lowered: Lowered, programs: StepPrograms, count: int) -> None:
    """Check that a program appends to the caches in place.

    Raises:
        GraphError: The program copies a cache instead.
    """
    uses = SlotUses.of(lowered)
    for past, present, _ in _pairs(lowered, programs, count):
        if uses.why_unsafe(present, past):
            raise GraphError(f"`{programs.name}` cannot append to the caches of several sessions.")
