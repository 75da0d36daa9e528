"""A thread that does what takes long, but for runs; what it has to tell comes back to who asked."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from tightship.driver.events import Event

Job = Callable[[], Event | None]


class Workers:
    """One thread; a finished job makes `fileno()` readable."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "tightship-prepare")
        self._done: deque[Future[Event | None]] = deque()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def fileno(self) -> int:
        """Readable when a job is done, or `wake` was called."""
        return self._wake

    def wake(self) -> None:
        """Make `fileno()` readable; may be called from any thread and from a signal handler."""
        os.eventfd_write(self._wake, 1)

    def do(self, job: Job) -> None:
        """Have something done, after all that was asked before."""
        self._thread.submit(job).add_done_callback(self._finished)

    def _finished(self, done: "Future[Event | None]") -> None:
        self._done.append(done)
        self.wake()

    def events(self) -> Iterator[Event]:
        """What jobs that are done have to tell."""
        try:
            os.eventfd_read(self._wake)
        except BlockingIOError:
            return
        while self._done:
            event = self._done.popleft().result()
            if event is not None:
                yield event

    def finish(self) -> Iterator[Event]:
        """Wait for all jobs; what they had to tell."""
        self._thread.shutdown()
        self.wake()
        yield from self.events()

    def close(self) -> None:
        """Close what `fileno` gives; no job is left."""
        os.close(self._wake)
