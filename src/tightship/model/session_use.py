"""Uses of a session by one thread at a time, and the session as its pool sees it meanwhile."""

import os
import weakref
from typing import TYPE_CHECKING

from tightship.errors import InputError

if TYPE_CHECKING:
    from tightship.model.session import Session


class IdleSession:
    """A session as its pool sees it while no thread uses it."""

    __slots__ = ("__weakref__", "_session", "idle_since")

    def __init__(self, session: "Session") -> None:
        """Refer to the session, which refers to this."""
        self._session = weakref.ref(session)
        self.idle_since = 0

    def evict(self) -> bool:
        """Give all pages back; returns False if the session is in use, or has none."""
        session = self._session()
        if session is None or not session._using.acquire(blocking=False):
            return False
        try:
            kept = session._kept
            if kept is None or kept.are_evicted or not session._length:
                return False
            session._rows.clear(0, session._length)
            if session._prefixes is not None:
                session._prefixes.cut(0)
            kept.are_evicted = True
            return True
        finally:
            session._using.release()


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
    if session._process != os.getpid():
        raise InputError(
            "The session belongs to the process that made it, not to a forked child; open one "
            "there."
        )
    if not session._using.acquire(blocking=False):
        raise InputError(
            "Another thread uses the session; one step at a time may run. Fork it to go on in "
            "two ways."
        )
    if session._is_closed:
        session._using.release()
        raise InputError("The session was closed; open another one.")
    session._uses += 1


def end_use(session: "Session") -> None:
    """End the use that `begin_use` began."""
    if session._pool is not None:
        session._idle.idle_since = session._pool._pages.use()
    session._using.release()
