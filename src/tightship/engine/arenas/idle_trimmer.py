"""A look at idle memory a while from now, where no run may come to do it."""

import threading
import weakref
from typing import Protocol

from tightship.engine.library import release_unused
from tightship.forks import guard


class Swept(Protocol):
    """What has idle memory."""

    def sweep(self) -> int:
        """Give idle memory back; its bytes."""

    def forked(self) -> None:
        """Become the child's; called under the lock."""


class IdleTrimmer:
    """At most one thread, which sleeps, sweeps and ends; there is none while all is given back.

    It keeps what it sweeps from nothing: neither from being collected, nor the process from
    ending. A fork waits until the lock is free, and the child has no such thread.
    """

    def __init__(self, swept: Swept, lock: threading.RLock) -> None:
        """`lock` is what `swept` works under."""
        self._swept = weakref.ref(swept)
        self.lock = lock
        self._timer: threading.Timer | None = None
        guard(self)

    def start(self, delay_s: float) -> None:
        """Sweep after so many seconds, unless that is under way; called under the lock.

        A process that may have no further thread, or no memory for one, goes without: its next
        run sweeps.
        """
        if self._timer is not None:
            return
        timer = threading.Timer(delay_s, _look, (weakref.ref(self),))
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:
            return
        self._timer = timer

    def stop(self) -> None:
        """No thread is left when this returns."""
        with self.lock:
            timer, self._timer = self._timer, None
        if timer is not None and timer is not threading.current_thread():
            timer.cancel()
            timer.join()

    def look(self) -> None:
        """Sweep now; the sweep starts the next look if there will be more."""
        with self.lock:
            self._timer = None
        swept = self._swept()
        if swept is not None and swept.sweep():
            release_unused()

    def forked(self) -> None:
        """Threads of the parent are not in the child."""
        self._timer = None
        swept = self._swept()
        if swept is not None:
            swept.forked()


def _look(watch: "weakref.ref[IdleTrimmer]") -> None:
    found = watch()
    if found is not None:
        found.look()
