"""Sessions of a language model, which answers borrow one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tightship.driver.texts.text_limits import CONTEXT, TextLimits
from tightship.errors import CapacityError, GraphError, InputError
from tightship.model import Model
from tightship.model.joint_steps import JointSteps
from tightship.model.session import Session
from tightship.model.session_pool import SessionPool

ROWS = 64
"""Tokens that reservations are multiples of, because caches take memory in whole pages."""


@dataclass(slots=True, eq=False)
class Slot:
    """Session, and the tokens that an answer reserves of the pool while it borrows it."""

    session: Session
    reserved: int = 0


@dataclass(slots=True)
class SessionSlots:
    """Sessions over one pool of memory, all of one thread.

    A session keeps its tokens when it is given back; the next answer gets the one with the most of
    its prompt. Answers reserve as many tokens as they may reach, so that none fails for memory;
    idle sessions lose theirs if others need the pages, or have them written to files first.

    Attributes:
        context: Most tokens of a session.
        pool: Memory of all sessions.
        joint: Steps of several of them at once; None if the model has none.
    """

    context: int
    pool: SessionPool
    joint: JointSteps | None
    _idle: list[Slot]
    _tokens: int
    """Tokens that the pool holds and that are not reserved."""
    _all: list[Slot] = field(default_factory=list)

    @classmethod
    def of(cls, model: Model, limits: TextLimits) -> "SessionSlots":
        """Open the sessions of a model.

        Raises:
            CapacityError: The limit does not hold one of them.
            GraphError, InputError: The model has no sessions, or not of this context or cache.
        """
        longest = model.tokenizer.longest_context or CONTEXT
        context = limits.context or min(CONTEXT, longest)
        model.tokenizer.check_trained(context)
        pool, first, joint = _first(model, context, limits)
        others = (_opened(model, context, limits, pool) for _ in range(1, limits.sessions))
        slots = [Slot(session) for session in (first, *others)]
        tokens = min(limits.sessions * context, pool.max_bytes * context // first.state_bytes)
        return cls(context, pool, joint, slots, tokens, list(slots))

    @property
    def count(self) -> int:
        """Number of sessions."""
        return len(self._all)

    def prepare(self) -> None:
        """Make the programs of all steps now, so that no answer waits for one.

        Raises:
            GraphError, OutOfMemoryError: A program cannot be made.
        """
        if self.joint is None:
            JointSteps.of(self._all[0].session).programs.make_all()
            return
        self.joint.programs.make_all()
        for count in sizes(self.count):
            self.joint.make(count)

    def take(self, prompt: Sequence[int], tokens: int) -> Slot | None:
        """Return the idle session with the most of a prompt; None if there is none for so many.

        Args:
            prompt: Tokens of the prompt.
            tokens: Most tokens that the answer may reach with it.
        """
        tokens = min(-(-tokens // ROWS) * ROWS, self.context)
        if not self._idle or tokens > self._tokens:
            return None
        slot = max(self._idle, key=lambda each: each.session.common(prompt))
        self._idle.remove(slot)
        slot.reserved = tokens
        self._tokens -= tokens
        return slot

    def give_back(self, slot: Slot) -> None:
        """Let others have a session."""
        self._tokens += slot.reserved
        slot.reserved = 0
        self._idle.append(slot)

    def close(self) -> None:
        """Close all sessions."""
        if self.joint is not None:
            self.joint.close()
        for slot in self._all:
            slot.session.close()
        self._all.clear()
        self._idle.clear()


def _opened(model: Model, context: int, limits: TextLimits, pool: SessionPool) -> Session:
    """Open a session that shares prefixes, if rows of this context end with pages."""
    given: dict[str, Any] = {"pool": pool, "cache": limits.cache}
    try:
        return model.session(context, share_prefix=True, **given)
    except InputError:
        return model.session(context, **given)


def _first(
    model: Model, context: int, limits: TextLimits
) -> tuple[SessionPool, Session, JointSteps | None]:
    """Open the first session, over the largest pool that the limit of the model holds.

    Raises:
        CapacityError: Not even one session fits.
    """
    with model.session(context, cache=limits.cache) as one:  # type: ignore[arg-type]
        whole = one.state_bytes
    pool = _pool(whole * limits.sessions, limits)
    try:
        session = _opened(model, context, limits, pool)
        return pool, session, _joint(session, limits.sessions)[0]
    except CapacityError as error:
        left = error.limit_bytes - error.needed_bytes + pool.max_bytes
        if left < whole:
            raise
    pool = _pool(whole, limits)
    session = _opened(model, context, limits, pool)
    joint, joint_bytes = _joint(session, limits.sessions)
    session.close()
    if left - joint_bytes < whole:
        joint, joint_bytes = None, 0
    pool = _pool(left - joint_bytes, limits)
    return pool, _opened(model, context, limits, pool), joint


def _pool(size_bytes: int, limits: TextLimits) -> SessionPool:
    """Return the memory of all sessions; no answer fails where files cannot hold what they lose.

    Raises:
        InputError: No file can be made in the folder of the limits.
    """
    if limits.spill_bytes is None:
        return SessionPool(size_bytes, at_cap="evict")
    return SessionPool(
        size_bytes, at_cap="spill", spill_bytes=limits.spill_bytes,
        spill_folder=limits.spill_folder, at_spill_cap="evict",
    )  # fmt: skip


def _joint(session: Session, count: int) -> tuple[JointSteps | None, int]:
    """Return the steps of up to so many sessions at once, and the bytes of their programs."""
    joint, size_bytes = JointSteps.of(session), 0
    try:
        for size in sizes(count):
            size_bytes += joint.planned_bytes(size)
    except GraphError:
        return None, 0
    return joint if size_bytes else None, size_bytes


def sizes(count: int) -> list[int]:
    """Return the powers of two from 2 up to a number, the largest first."""
    return [1 << bit for bit in range(count.bit_length() - 1, 0, -1)]
