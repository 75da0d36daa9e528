"""Defines `Session`: a text that a decoder goes on with, and the caches of its tokens."""

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightship._core import KernelError, SessionState, StopFlag
from tightship.engine.run.limits import Limits, end, limits_of
from tightship.engine.state.cache_rows import CacheRows
from tightship.engine.state.page_pool import PagePool
from tightship.errors import InputError
from tightship.model.feeds import Array
from tightship.model.session_pool import SessionPool
from tightship.model.session_text import SessionText
from tightship.model.session_tokens import KeptTokens, read_tokens
from tightship.model.session_use import IdleSession, Use, begin_use, end_use
from tightship.model.step_arrays import BoundCaches
from tightship.model.step_programs import StepPrograms, pieces
from tightship.public_calls import explains_memory, public_methods

if TYPE_CHECKING:
    from tightship.model.prefixes import Prefixes


@public_methods
class Session(SessionText):
    """Tokens of one text, whose keys and values stay in caches of a fixed number of rows.

    `Model.session` makes one. A step appends to the caches in place; its program does not depend on
    how many tokens came before. One thread at a time may use a session, and not a forked child.
    """

    def __init__(
        self,
        programs: StepPrograms,
        inputs: Mapping[str, Array],
        another: "Another",
        pool: SessionPool | None = None,
        *,
        is_fork: bool = False,
    ) -> None:
        """Reserve the caches.

        Args:
            programs: Programs of the model.
            inputs: Arrays of inputs that are the same at each step.
            another: Opens a further session, if the model's limit holds it.
            pool: Gives pages as tokens come; without, the memory of the whole context is the
                session's from the start.
            is_fork: Whether rows of another session follow, so that their pages can be shared.
        """
        self._programs, self._inputs, self._another = programs, dict(inputs), another
        self._pool = pool
        self._rows = self._new_rows(is_fork=is_fork)
        self._caches: BoundCaches | None = None
        self._state = SessionState()
        self._kept: KeptTokens | None = None
        self._prefixes: Prefixes | None = None
        self._is_closed = False
        self._idle = IdleSession(self)
        if pool is not None and pool._evicts:
            self._kept = KeptTokens()
            pool._pages.add(self._idle)

    def _share_prefix(self, prefixes: "Prefixes") -> None:
        """Show rows that others have of the same first tokens, and let them show this one's."""
        self._prefixes, self._kept = prefixes, self._kept or KeptTokens()
        self._rows = self._new_rows(is_fork=True)

    def _new_rows(self, *, is_fork: bool = False) -> CacheRows:
        """Return caches without tokens."""
        shares = is_fork and self._programs.appends
        reserved = self._pool is None and not shares
        return CacheRows(self._programs.decoder.caches, self._giver, reserved=reserved)

    @property
    def _giver(self) -> PagePool | None:
        return None if self._pool is None else self._pool._pages

    @property
    def length(self) -> int:
        """Tokens that the session has."""
        return self._state.length

    @property
    def _uses(self) -> int:
        return self._state.uses

    @property
    def context(self) -> int:
        """Most tokens that the caches can have."""
        return self._programs.decoder.context

    @property
    def state_bytes(self) -> int:
        """Bytes of the caches for the whole context."""
        return self._programs.decoder.state_bytes

    @explains_memory("a step of a session")
    def step(
        self, tokens: ArrayLike, *, timeout_s: float | None = None, stop: StopFlag | None = None
    ) -> NDArray[Any]:
        """Append tokens, and return the logits of the last one, or of all.

        Many tokens, as those of a prompt, run in pieces of powers of two.

        Args:
            tokens: Numbers of the tokens, as a list or of shape `[batch, count]`; embeddings of
                shape `[batch, count, width]` if the model takes these.
            timeout_s: Seconds after which the step ends.
            stop: Flag that ends the step when another thread sets it.

        Returns:
            Logits `[batch, 1, vocabulary]`; of all tokens if the session has `rows="all"`.

        Raises:
            CapacityError: The session's pool has too few free pages.
            InputError: The tokens do not fit, or their number the context; another thread uses the
                session. As after any error, the session is as it was.
            DeadlineError, StoppedError: The step was ended.
            OutOfMemoryError: The system refuses memory.
        """
        steps = self._programs.token_steps
        if timeout_s is None and steps is not None:  # a token more, the most frequent by far
            try:
                found: NDArray[Any] | str | None = steps.step(self._state, tokens, stop)
            except BaseException as error:
                self._undo_token()
                if isinstance(error, KernelError):
                    raise InputError(str(error)) from None
                raise
            if isinstance(found, str):
                self._undo_token()
                end(found)
            elif found is not None:
                return found
        begin_use(self)  # a context manager takes time that steps of small models notice
        try:
            return self._step(tokens, limits_of(timeout_s, stop))
        finally:
            end_use(self)

    def _undo_token(self) -> None:
        """Clear the row of a token whose step has failed, and end the use."""
        try:
            length = self._state.length
            self._rows.clear(length, length + 1)
        finally:
            end_use(self)

    def _step(self, tokens: ArrayLike, limits: Limits) -> NDArray[Any]:
        programs = self._programs
        given = read_tokens(tokens, programs.decoder, self._state.length)
        programs.make(pieces(given.shape[1], programs.chunk))
        self._compute_again(limits, given.shape[1])
        found = self._stepped(given, self._state.length, limits)
        self._appended(given)
        self._make_ready()
        return found[-1] if programs.last else np.concatenate(found, axis=1)

    def _make_ready(self) -> None:
        """Let steps of one token run without further preparation, as far as rows are there."""
        bound = None if self._caches is None else self._caches.known(1)
        is_whole = self._prefixes is None or self._programs.chunk > 1
        if bound is not None and bound.takes_one_number and is_whole:
            self._state.keeps_tokens = self._kept is not None
            bound.make_ready(self._state, self._rows.ready)

    def _appended(self, tokens: Array) -> None:
        """Note tokens whose rows are there now."""
        self._state.length += tokens.shape[1]
        if self._kept is not None:
            self._kept.add(tokens)
            if self._prefixes is not None:
                self._prefixes.publish(self._kept.all(), self._rows, self._giver)

    def _stepped(self, tokens: Array, start: int, limits: Limits, further: int = 0) -> list[Array]:
        """Run tokens behind the first `start`; return the logits of each piece.

        After an error the caches are as they were.

        Args:
            tokens: The tokens.
            start: Tokens whose rows there are.
            limits: Limits of the run.
            further: Tokens behind these whose rows are reached too.
        """
        done, found, count = 0, [], tokens.shape[1]
        programs, prefixes = self._programs, self._prefixes
        try:
            if not start and prefixes is not None:
                done = prefixes.adopt(tokens, self._rows, self._giver)
            self._reach(start + done, start + count + further)
            if prefixes is not None:
                prefixes.computed(start + done, count - done)
            caches = self._bound_caches()
            for size in pieces(count - done, programs.chunk):
                part = tokens[:, done : done + size]
                found.append(programs.run(size, part, start + done, caches, limits))
                done += size
        except BaseException:
            self._rows.clear(start, start + count)
            if prefixes is not None:
                prefixes.cut(start)
            raise
        return found

    def _bound_caches(self) -> BoundCaches:
        """Return the caches with what programs have bound of them."""
        if self._caches is None or self._caches.arrays is not self._rows.arrays:
            self._caches = BoundCaches(self._rows.arrays, self._inputs)
        return self._caches

    def _reach(self, start: int, stop: int) -> None:
        """Prepare the rows of tokens that will run; all of them if steps write over all."""
        self._rows.reach(start, stop if self._programs.appends else self.context)

    def _compute_again(self, limits: Limits, further: int = 0) -> None:
        """Compute the rows of an evicted session's tokens, or read them if they were spilled.

        Args:
            limits: Limits of the run.
            further: Tokens behind these whose rows are wanted too.

        Raises:
            CapacityError: The pool has too few free pages; the session stays evicted.
        """
        kept = self._kept
        if kept is None or not kept.are_evicted:
            return
        if self._state.length and not self._read_back(kept, further):
            self._stepped(kept.all(), 0, limits, further)
        kept.are_evicted = False

    def _read_back(self, kept: KeptTokens, further: int) -> bool:
        if kept.spilled is None:
            return False
        from tightship.model.spilled_rows import read_back  # few pools spill

        return read_back(self, kept, further)

    def reset(self) -> None:
        """Forget all tokens, and give the memory of their rows back.

        Raises:
            InputError: Another thread uses the session.
        """
        self.truncate(0)

    def truncate(self, length: int) -> None:
        """Forget all tokens but the first ones, and give whole pages of the others' rows back.

        Args:
            length: Tokens to keep, at most those that there are.

        Raises:
            InputError: There are fewer tokens, or another thread uses the session.
        """
        with self._used():
            if not 0 <= length <= self._state.length:
                raise InputError(
                    f"The session has {self._state.length} tokens and cannot keep {length}; give a "
                    f"number from 0 to {self._state.length}."
                )
            self._clear(length)
            if self._kept is not None:
                self._kept.cut(length)
            if self._prefixes is not None:
                self._prefixes.cut(length)
            self._state.length = length

    def _clear(self, start: int) -> None:
        """Set rows from `start` on to zero, unless the session is evicted."""
        if self._kept is None or not self._kept.are_evicted:
            self._rows.clear(start, self._state.length)

    def fork(self) -> "Session":
        """Return a session with the same tokens, which goes on by itself.

        Both show the same memory for whole pages of these tokens' rows; the rest is copied.

        Raises:
            CapacityError: The limit of loading does not hold the caches of one more session, or the
                pool what is copied.
            InputError: Another thread uses the session.
            OutOfMemoryError: The system refuses memory.
        """
        with self._used():
            self._compute_again(Limits())
            other = self._another(self._programs, self._inputs, self._pool, is_fork=True)
            if self._programs.appends:
                other._rows.show(self._rows, self._state.length)
            else:
                other._reach(0, self._state.length)
                other._rows.copy_from(self._rows, self._state.length)
            other._state.length = self._state.length
            if self._kept is None:
                other._keep_pages()
                return other
            if self._prefixes is not None:
                other._prefixes, other._kept = self._prefixes.again(), other._kept or KeptTokens()
            if other._kept is not None and self._state.length:
                other._kept.add(self._kept.all())
            return other

    def _keep_pages(self) -> None:
        """Keep pages at the cap, because the tokens are not known."""
        self._kept = self._prefixes = None
        if self._pool is not None:
            self._pool._pages.remove(self._idle)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tokens' rows to a file of the `.safetensors` format, whole or not at all.

        Raises:
            InputError: Another thread uses the session.
        """
        from tightship.model.session_file import write

        with self._used():
            self._compute_again(Limits())
            write(path, self._programs.digest, self._rows, self._state.length)

    def restore(self, path: str | PathLike[str]) -> None:
        """Replace the tokens by those that `save` wrote.

        The file has rows and no tokens, so that a pool does not evict the session any more.

        Raises:
            CapacityError: The session's pool has too few free pages.
            FormatError: The file is not one of `save`.
            InputError: It is of another model, has its caches in another type, or more tokens than
                the context; another thread uses the session. The session is as it was.
        """
        from tightship.model.session_file import read

        with self._used():
            rows = self._new_rows()
            self._state.length = read(path, self._programs.digest, self._programs.decoder, rows)
            self._rows, self._caches = rows, None
            self._keep_pages()

    def close(self) -> None:
        """Give all memory of the session back; it cannot be used again.

        A session that nothing refers to any more does so by itself.

        Raises:
            InputError: Another thread uses the session.
        """
        if self._is_closed:
            return
        with self._used():
            self._is_closed = True
            self._state.length, self._kept, self._caches = 0, None, None
            del self._rows

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _used(self) -> Use:
        return Use(self)

    def __repr__(self) -> str:
        name, length = self._programs.name, self._state.length
        return f"<tightship.Session {name}: {length} of {self.context} tokens>"


class Another(Protocol):
    """Opens a session over programs, with inputs that are the same at each step."""

    def __call__(
        self,
        programs: StepPrograms,
        inputs: Mapping[str, Array],
        pool: SessionPool | None,
        *,
        is_fork: bool = False,
    ) -> Session:
        """Open it."""
