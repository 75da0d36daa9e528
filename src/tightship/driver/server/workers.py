"""Threads for long jobs other than runs; their events are collected by the owner.

Clients alternate, and each has one job at a time: that of the highest priority, then the oldest.
"""

import heapq
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from tightship.driver.service.events import Event
from tightship.driver.threads import Threads
from tightship.driver.types.status import Priority

Job = Callable[[], Event | None]
_Row = list[tuple[int, int, Job]]


class Workers:
    """Up to `threads` threads; a finished job makes `fileno()` readable."""

    def __init__(self, threads: int) -> None:
        """Start the first thread.

        Raises:
            RuntimeError: The system cannot start it.
        """
        self._threads = Threads(threads, "tightship-prepare")
        self._lock = threading.Lock()
        self._rows: dict[int, _Row] = {}
        self._permits: deque[int] = deque()
        self._count = 0
        self._done: deque[Future[Event | None]] = deque()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def fileno(self) -> int:
        """Return a descriptor that is readable when a job is done or `wake` was called."""
        return self._wake

    def wake(self) -> None:
        """Make `fileno()` readable; may be called from any thread and from a signal handler."""
        os.eventfd_write(self._wake, 1)

    def do(self, job: Job, client: int = 0, priority: int = Priority.MEDIUM) -> None:
        """Queue a job of a client."""
        with self._lock:
            self._count += 1
            row = self._rows.get(client)
            is_first = row is None
            if row is None:
                row = self._rows[client] = []
                self._permits.append(client)
            heapq.heappush(row, (-priority, self._count, job))
            if is_first:
                self._threads.submit(self._work)

    def _work(self) -> None:
        """Do jobs, each of the next client in turn, which then goes to the end of the queue."""
        while (permit := self._next()) is not None:
            client, job = permit
            done = Future[Event | None]()
            try:
                done.set_result(job())
            except BaseException as error:  # noqa: BLE001 - raised by `events`
                done.set_exception(error)
            self._end(client, done)
            self.wake()

    def _next(self) -> tuple[int, Job] | None:
        with self._lock:
            if not self._permits:
                return None
            client = self._permits.popleft()
            _, _, job = heapq.heappop(self._rows[client])
            return client, job

    def _end(self, client: int, done: "Future[Event | None]") -> None:
        with self._lock:
            if self._rows[client]:
                self._permits.append(client)
            else:
                del self._rows[client]
            self._done.append(done)

    def events(self) -> Iterator[Event]:
        """Yield the events of finished jobs."""
        try:
            os.eventfd_read(self._wake)
        except BlockingIOError:
            return
        while self._done:
            event = self._done.popleft().result()
            if event is not None:
                yield event

    def finish(self) -> Iterator[Event]:
        """Wait for all jobs and yield their events."""
        self._threads.shutdown()
        self.wake()
        yield from self.events()

    def close(self) -> None:
        """Close the descriptor of `fileno`; no job may be left."""
        os.close(self._wake)
