"""Calls that wait for run permits without occupying threads, and the threads that make them."""

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from tightship._core import QueuedRuns, RequestMetrics, RunPermits
from tightship.driver.oip.caller import Caller

Call = Callable[[], None]


class QueuedCalls:
    """Calls in the queue of the run permits, each made by a thread once it has its permit.

    There are as many threads as permits. A thread whose call has ended makes the one that got the
    permit, so that no other has to be woken for it.
    """

    def __init__(self, permits: RunPermits) -> None:
        """Create an empty queue."""
        self._permits = permits
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_SEMAPHORE)
        self._queue = QueuedRuns(permits, self._bell)
        self._numbers = itertools.count()
        self._calls: dict[int, tuple[Call, Caller]] = {}
        self._at_once: deque[int] = deque()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._open_count = 0
        self._is_closed = False

    def enter(self, call: Call, caller: Caller, model: str, metrics: RequestMetrics) -> int | None:
        """Have a call made once its caller has a permit.

        Args:
            call: The call, which raises no exceptions.
            caller: Client, which has the permit when the call is made.
            model: Name of the model.
            metrics: Metrics that count the call while it waits.

        Returns:
            Number to give up by; None if the system has no thread for the call.
        """
        number = next(self._numbers)
        self._calls[number] = call, caller
        with self._lock:
            self._open_count += 1
            needs_thread = len(self._threads) < min(self._open_count, self._permits.count)
        if self._queue.join(number, caller.names(model), 0, metrics):
            self._at_once.append(number)
            os.eventfd_write(self._bell, 1)
        if needs_thread and not self._start():
            self._remove(number)
            return None
        return number

    def has(self, number: int) -> bool:
        """Whether a call still waits."""
        return number in self._calls

    def give_up(self, number: int) -> None:
        """Make a call now, which is refused for lack of a permit; harmless if it has begun."""
        found = self._remove(number)
        if found is not None:
            call, caller = found
            caller.may_wait = False
            call()

    def _remove(self, number: int) -> tuple[Call, Caller] | None:
        """Remove a call from the queue; return it, unless it has begun."""
        found = self._calls.pop(number, None)
        if found is not None:
            self._queue.leave(number)
            self._end()
        return found

    def close(self) -> None:
        """End the threads once the calls have ended that have begun. May be repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        for number in tuple(self._calls):
            self.give_up(number)
        os.eventfd_write(self._bell, len(self._threads) + 1)
        for thread in self._threads:
            thread.join()
        os.close(self._bell)

    def _start(self) -> bool:
        """Start a thread; return whether there is one, because the system may refuse more."""
        thread = threading.Thread(target=self._work, name="tightship-run", daemon=True)
        with suppress(RuntimeError):
            thread.start()
            self._threads.append(thread)
        return bool(self._threads)

    def _work(self) -> None:
        while True:
            os.eventfd_read(self._bell)
            if self._is_closed:
                return
            self._make_next()

    def _make_next(self) -> None:
        """Make a call; a function of its own, because a thread that waits keeps its variables."""
        number = self._next()
        found = None if number is None else self._calls.pop(number, None)
        if number is None or found is None:
            return  # it has given up
        call, caller = found
        caller.receive_permit(partial(self._give_back, number))
        with suppress(MemoryError):  # not enough to tell the client; others need the thread
            call()
        caller.release()
        self._end()

    def _give_back(self, number: int, _: object = None) -> None:
        self._queue.give_back(number)

    def _next(self) -> int | None:
        """Return the number of a call that has its permit."""
        found = self._queue.next()
        if found is None:
            with suppress(IndexError):
                return self._at_once.popleft()
        return found

    def _end(self) -> None:
        with self._lock:
            self._open_count -= 1
