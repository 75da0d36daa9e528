"""Opens sessions of a model: programs by context, and a check of the model's limit."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike

from tightship.engine.compile.shape_specializer import GraphSource
from tightship.engine.state.decoder import Declared, decoder_of
from tightship.engine.state.stored_caches import CacheType, check_cache_type
from tightship.engine.weights.weight_store import PackedCopy
from tightship.errors import CapacityError, InputError
from tightship.model.feeds import Array
from tightship.model.session import Session
from tightship.model.session_pool import SessionPool
from tightship.model.step_programs import StepPrograms
from tightship.quantity import format_bytes

CHUNK = 128
"""Most tokens of a program, unless the caller chooses."""

IDLE_MAX = 4
"""Programs without a session that are kept, by the context and other choices of their sessions."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Choices of a caller of `Model.session`.

    Attributes:
        context: Most tokens.
        batch: Texts that go on at once, each by as many tokens.
        chunk: Most tokens of a program; rounded down to a power of two, and to half the context.
        rows: `last` or `all`: the logits that a step returns.
        state: Output by cache input, with `*`; None recognizes names.
        inputs: Arrays of inputs that are the same at each step.
        pool: Gives the pages of the caches; None reserves them.
        share_prefix: Whether rows of equal first tokens are shared with other sessions.
        grows: Whether caches of open rows have more rows after a step; the model decides if True.
        cache: Type that caches are rounded to; None for the model's.
    """

    context: int
    batch: int = 1
    chunk: int = CHUNK
    rows: str = "last"
    state: Mapping[str, str] | None = None
    inputs: Mapping[str, ArrayLike] | None = None
    pool: SessionPool | None = None
    share_prefix: bool = False
    grows: bool = True
    cache: CacheType | None = None

    def __post_init__(self) -> None:
        if self.rows not in ("last", "all"):
            raise InputError(f'`rows` is {self.rows!r}; it must be "last" or "all".')
        if self.share_prefix and self.rows == "all":
            raise InputError(
                'Tokens of a shared prefix do not run; `rows` must be "last" with `share_prefix`.'
            )
        check_cache_type(self.cache)
        if self.chunk < 1:
            raise InputError(f"`chunk` is {self.chunk}; it must be at least 1.")

    @property
    def steps(self) -> int:
        """Most tokens of a program, a power of two."""
        return 1 << (min(self.chunk, max(self.context // 2, 1)).bit_length() - 1)

    def arrays(self) -> dict[str, Array]:
        """Return the constant inputs as arrays."""
        return {name: np.asarray(given) for name, given in (self.inputs or {}).items()}


@dataclass(slots=True)
class Sessions:
    """Sessions of a model.

    Attributes:
        source: Source of the model's graphs.
        name: Name of the model in errors.
        limit_bytes: Limit of loading; None for none.
        used_bytes: Bytes of the model's own plan.
    """

    source: GraphSource
    name: str
    limit_bytes: int | None
    used_bytes: int
    _programs: dict[object, StepPrograms] = field(default_factory=dict)
    _open: "WeakSet[Session]" = field(default_factory=WeakSet)
    _opening: threading.Lock = field(default_factory=threading.Lock)

    def open(
        self, options: SessionOptions, declared: Declared, packed: Sequence[PackedCopy]
    ) -> Session:
        """Open a session; the arguments and errors are those of `programs_for`."""
        programs, arrays = self.programs_for(options, declared, packed), options.arrays()
        if not options.share_prefix:
            return self.over(programs, arrays, options.pool)
        from tightship.model.prefixes import Prefixes  # few sessions need what it loads

        prefixes = Prefixes.of(programs, arrays)
        session = self.over(programs, arrays, options.pool)
        session._share_prefix(prefixes)
        return session

    def programs_for(
        self,
        options: SessionOptions,
        declared: Declared,
        packed: Sequence[PackedCopy],
        copies: int = 1,
    ) -> StepPrograms:
        """Return programs that those of equal choices share, those for a chunk and a token made.

        Args:
            options: Choices of the caller.
            declared: Inputs and outputs of the model.
            packed: Weights that the model has packed.
            copies: Copies of the caches that the limit of loading has to hold.

        Raises:
            CapacityError: The limit of loading does not hold the caches and programs.
            GraphError: The model cannot be planned for a whole context.
        """
        arrays = options.arrays()
        shapes = {name: array.shape for name, array in arrays.items()}
        told = tuple(sorted((options.state or {}).items()))
        key = (options.context, options.batch, options.steps, options.rows, options.grows, told,
               tuple(sorted(shapes.items())), options.cache)  # fmt: skip
        programs = self._programs.get(key)
        if programs is None:
            decoder = decoder_of(
                self.source.read, declared, options.context, options.batch, options.state, shapes
            ).with_cache_type(options.cache)
            decoder = decoder if options.grows else decoder.with_fixed_caches()
            programs = StepPrograms(
                decoder, self.name, self.source.settings, options.steps, options.rows == "last",
                list(packed),
            )  # fmt: skip
        with self._opening:
            self._check(programs, options.pool, copies)
        programs.program(programs.chunk)
        programs.program(1)
        self._programs[key] = programs
        self._forget_idle()
        return programs

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
