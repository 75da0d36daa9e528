"""Uses of a session by one thread at a time, and the session as its pool sees it meanwhile."""

import weakref
from typing import TYPE_CHECKING

from tightship.errors import InputError

if TYPE_CHECKING:
    from tightship.model.session import Session


class IdleSession:
    """A session as its pool sees it while no thread uses it."""

    __slots__ = ("__weakref__", "_session", "_state")

    def __init__(self, session: "Session") -> None:
        """Refer to the session, which refers to this."""
        self._session, self._state = weakref.ref(session), session._state

    @property
    def idle_since(self) -> int:
        """Time of `time.monotonic_ns` at which the last use ended."""
        return self._state.used_ns

    def evict(self) -> bool:
        """Give all pages back; returns False if the session is in use, or has none.

        Raises:
            CapacityError: The rows were to be spilled and cannot be; the session has its pages.
        """
        session = self._session()
        if session is None or not self._state.begin():
            return False
        try:
            kept = session._kept
            if kept is None or kept.are_evicted or not self._state.length:
                return False
            if session._pool is not None:
                kept.spilled = session._pool._spill(session._rows, self._state.length)
            session._rows.clear(0, self._state.length)
            if session._prefixes is not None:
                session._prefixes.cut(0)
            kept.are_evicted = True
            return True
        finally:
            self._state.end()


class Use:
    """Context manager of one call's use of a session."""

    __slots__ = ("_session",)

    def __init__(self, session: "Session") -> None:
        """Refer to the session."""
        self._session = session

    def __enter__(self) -> None:
        begin_use(self._session)

    def __exit__(self, *_: object) -> None:
        end_use(self._session)


def begin_use(session: "Session") -> None:
    """Begin one call's use of a session.

    Raises:
        InputError: The session is closed, in use, or of another process.
    """
    state = session._state
    if not state.is_of_this_process:
        raise InputError(
            "The session belongs to the process that made it, not to a forked child; open one "
            "there."
        )
    if not state.begin():
        raise InputError(
            "Another thread uses the session; one step at a time may run. Fork it to go on in "
            "two ways."
        )
    if session._is_closed:
        state.end()
        raise InputError("The session was closed; open another one.")
    state.uses += 1
    if session._kept is not None:
        session._kept.add_written(state.take_written())


def end_use(session: "Session") -> None:
    """End the use that `begin_use` began."""
    session._state.end()
