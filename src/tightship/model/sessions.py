"""Opens sessions of a model: programs by context, and a check of the model's limit."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable
from weakref import WeakSet

from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.compile.shape_specializer import GraphSource
from tightship.engine.state.decoder import Declared, Decoder
from tightship.engine.state.step_choices import StepChoices
from tightship.engine.stored.steps import StoredSteps
from tightship.engine.weights.weight_store import PackedCopy
from tightship.errors import CapacityError
from tightship.model.feeds import Array
from tightship.model.keeping import Keeping
from tightship.model.session import Session
from tightship.model.session_options import SessionOptions
from tightship.model.session_pool import SessionPool
from tightship.model.step_programs import StepPrograms
from tightship.quantity import format_bytes

if TYPE_CHECKING:
    from tightship.graph import Graph
    from tightship.text.generation import TokenizerSource

IDLE_MAX = 4
"""Programs without a session that are kept, by the context and other choices of their sessions."""


class DecoderFile(NamedTuple):
    """File of a decoder, read for its graphs.

    Attributes:
        graphs: Source of its graphs.
        declared: Its inputs and outputs.
        packed: Weights of the graphs that are packed already.
    """

    graphs: GraphSource
    declared: Declared
    packed: Sequence[PackedCopy]


@runtime_checkable
class StepSource(Protocol):
    """Specializer of a model whose sessions may have stored programs."""

    def stored_steps(self, choices: StepChoices) -> StoredSteps | None:
        """Return the programs of sessions, stored first if they are not; None if they cannot be.

        Raises:
            GraphError: The model cannot be planned for a whole context.
            InputError: The model has no caches, or its file has changed.
        """

    def stored_joint(
        self, choices: StepChoices, steps: StoredSteps, decoder: Decoder, count: int
    ) -> CompiledModel | None:
        """Return the program for a token of each of some sessions, stored first if it is not.

        None if it cannot be.

        Raises:
            GraphError: The model can have no such program.
            InputError: The model's file has changed.
        """


@dataclass(slots=True)
class Sessions:
    """Sessions of a model.

    Attributes:
        file: Function that opens the model's file for its graphs.
        stored: Source of stored programs; None if there are none.
        name: Name of the model in errors.
        limit_bytes: Limit of loading; None for none.
        used_bytes: Bytes of the model's own plan.
        tokenizer: Function that returns the model's tokenizer; None if it can have none.
    """

    file: Callable[[], DecoderFile]
    stored: StepSource | None
    name: str
    limit_bytes: int | None
    used_bytes: int
    tokenizer: "TokenizerSource | None" = None
    _programs: dict[StepChoices, StepPrograms] = field(default_factory=dict)
    _open: "WeakSet[Session]" = field(default_factory=WeakSet)
    _opening: threading.Lock = field(default_factory=threading.Lock)

    def open(self, options: SessionOptions) -> Session:
        """Open a session; the errors are those of `programs_for`."""
        programs, arrays = self.programs_for(options), options.arrays()
        if not options.share_prefix:
            return self.over(programs, arrays, options.pool)
        from tightship.model.prefixes import Prefixes  # few sessions need what it loads

        prefixes = Prefixes.of(programs, arrays)
        session = self.over(programs, arrays, options.pool)
        session._share_prefix(prefixes)
        return session

    def programs_for(self, options: SessionOptions, copies: int = 1) -> StepPrograms:
        """Return programs that those of equal choices share, those for a chunk and a token made.

        Args:
            options: Choices of the caller.
            copies: Copies of the caches that the limit of loading has to hold.

        Raises:
            CapacityError: The limit of loading does not hold the caches and programs.
            GraphError: The model cannot be planned for a whole context.
        """
        choices = options.choices()
        programs = self._programs.get(choices) or self.of(choices)
        with self._opening:
            self._check(programs, options.pool, copies)
        programs.make_ends(with_kept=self.limit_bytes is not None)
        self._programs[choices] = programs
        self._forget_idle()
        return programs

    def of(self, choices: StepChoices) -> StepPrograms:
        """Return programs for choices, none of which has been made in this process."""
        stored = None if self.stored is None else self.stored.stored_steps(choices)
        chunk, joint, kept = choices.chunk, None, None
        if stored is not None and self.stored is not None:
            decoder = choices.decoder(self._read, stored.declared)
            settings, packed = stored.settings, stored.copies
            chunk = min(chunk, max(stored.sizes))
            joint = partial(self.stored.stored_joint, choices, stored, decoder)
        else:
            file = self.file()
            decoder = choices.decoder(file.graphs.read, file.declared)
            settings, packed = file.graphs.settings, tuple(file.packed)
            if file.graphs.kept is not None:
                kept = Keeping(file.graphs.kept, choices)
        return StepPrograms(
            decoder, self.name, settings, chunk, choices.last, list(packed), stored, joint, kept
        )

    def _read(self, shapes: Mapping[str, tuple[int, ...]]) -> "Graph":
        """Read the graph of the file, which stored programs leave closed."""
        return self.file().graphs.read(shapes)

    def _forget_idle(self) -> None:
        """Forget programs of contexts that were opened first and have no session any more."""
        used = {id(session._programs) for session in self._open}
        idle = [each for each in self._programs.values() if each.last and id(each) not in used]
        for each in idle[:-IDLE_MAX]:
            self.forget(each)

    def forget(self, programs: StepPrograms) -> None:
        """Let programs go when the last session or run that has them ends."""
        self._programs = {key: each for key, each in self._programs.items() if each is not programs}

    def over(
        self,
        programs: StepPrograms,
        inputs: Mapping[str, Array],
        pool: SessionPool | None,
        *,
        is_fork: bool = False,
    ) -> Session:
        """Open a session over programs that have been made.

        Raises:
            CapacityError: The limit of loading does not hold its caches.
            OutOfMemoryError: The system refuses memory.
        """
        with self._opening:
            self._check(programs, pool)
            session = Session(programs, inputs, self.over, pool, is_fork=is_fork)
            session._tokenizer = self.tokenizer
            self._open.add(session)
            return session

    def _check(self, programs: StepPrograms, pool: SessionPool | None, copies: int = 1) -> None:
        """Check that one more session over programs fits the limit, with all programs.

        A pool counts once, with its cap.
        """
        if self.limit_bytes is None:
            return
        open_ = [session for session in self._open if not session._is_closed]
        pools = {session._pool for session in open_ if session._pool is not None}
        others = sum(session.state_bytes for session in open_ if session._pool is None)
        others += sum(each.max_bytes for each in pools)
        kinds = {id(each): each for each in (*self._programs.values(), programs)}.values()
        steps = sum(each.planned_bytes() for each in kinds)
        state = copies * programs.decoder.state_bytes
        if pool is not None:
            state = 0 if pool in pools else pool.max_bytes
        left = self.limit_bytes - self.used_bytes - others - steps
        if state <= left:
            return
        fits = max(left // programs.decoder.bytes_per_token, 0)
        what = "its caches" if pool is None else "its pool"
        remedy = f"a context of at most {fits}" if pool is None else "a smaller pool"
        raise CapacityError(
            f"A session of `{self.name}` with a context of {programs.decoder.context} needs "
            f"{format_bytes(state)} for {what}, and {format_bytes(max(left, 0))} are left of "
            f"the limit of {format_bytes(self.limit_bytes)}: the model takes "
            f"{format_bytes(self.used_bytes)}, programs and arenas of sessions "
            f"{format_bytes(steps)}, caches of {len(open_)} others {format_bytes(others)}. "
            f"Raise the limit, or ask for {remedy} or a smaller `chunk`.",
            needed_bytes=self.limit_bytes - left + state,
            limit_bytes=self.limit_bytes,
        )

    def close(self) -> None:
        """Release the programs; waits for steps in progress."""
        for programs in self._programs.values():
            programs.close()
        self._programs.clear()
