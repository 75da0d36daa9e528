"""Deadline of a connection that is moved with each request, on one timer that is rarely set."""

import asyncio
from collections.abc import Callable


class Deadline:
    """Calls a function once a time has passed, unless it is moved or dropped before."""

    def __init__(self, loop: asyncio.AbstractEventLoop, passed: Callable[[], None]) -> None:
        """Call `passed` on a loop."""
        self._loop, self._passed = loop, passed
        self._timer: asyncio.TimerHandle | None = None
        self._due_s: float | None = None

    def set(self, seconds: float) -> None:
        """Set the deadline, which replaces the one before."""
        self._due_s = self._loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._due_s:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._due_s, self._look)

    def drop(self) -> None:
        """Have no deadline; the timer goes on for the next one."""
        self._due_s = None

    def close(self) -> None:
        """Stop for good, and release the function, which may refer to the owner of this."""
        self._due_s, self._passed = None, _ignore
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self._due_s is None:
            return
        if self._due_s > self._loop.time():
            self._timer = self._loop.call_at(self._due_s, self._look)
        else:
            self._due_s = None
            self._passed()


def _ignore() -> None:
    """Ignore a deadline of an owner that is gone."""
