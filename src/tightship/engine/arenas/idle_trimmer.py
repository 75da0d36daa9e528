"""Gives idle memory back after a delay, because no further run may come to do it."""

import threading
import weakref
from typing import Protocol

from tightship.engine.library import release_unused
from tightship.forks import guard


class Swept(Protocol):
    """Owner of memory that may become idle."""

    def sweep(self) -> int:
        """Give idle memory back; return its bytes."""

    def forked(self) -> None:
        """Adapt to being in a forked child; called under the lock."""


class IdleTrimmer:
    """Thread, at most one, that sleeps and sweeps; it ends once all memory is given back.

    It refers to the owner weakly and is a daemon, so neither collection nor the end of the process
    waits for it. A fork waits until the lock is free; the child has no such thread.
    """

    def __init__(self, swept: Swept, lock: threading.RLock) -> None:
        """Watch `swept`, which works under `lock`."""
        self._swept = weakref.ref(swept)
        self.lock = lock
        self._timer: threading.Timer | None = None
        guard(self)

    @property
    def is_waiting(self) -> bool:
        """Whether a sweep is pending."""
        return self._timer is not None

    def start(self, delay_s: float) -> None:
        """Sweep after `delay_s` seconds, unless a sweep is pending; called under the lock.

        If no thread can be started, the next run sweeps.
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
        """Cancel the sweep, and wait for its thread to end."""
        with self.lock:
            timer, self._timer = self._timer, None
        if timer is not None and timer is not threading.current_thread():
            timer.cancel()
            timer.join()

    def look(self) -> None:
        """Sweep now; the sweep calls `start` if more may become idle."""
        with self.lock:
            self._timer = None
        swept = self._swept()
        if swept is not None and swept.sweep():
            release_unused()

    def forked(self) -> None:
        """Forget the thread, which a forked child does not have."""
        self._timer = None
        swept = self._swept()
        if swept is not None:
            swept.forked()


def _look(watch: "weakref.ref[IdleTrimmer]") -> None:
    found = watch()
    if found is not None:
        found.look()
