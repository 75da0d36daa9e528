"""Thread pool that starts further threads only when those that it has are held up."""

from functools import partial

from tightship.driver.memory.timer_thread import TimerThread
from tightship.driver.threads import Threads

FEW = 4
"""Threads that are started as soon as work comes."""
HELD_UP_S = 0.005
"""Seconds in which no thread takes work that waits, after which others are started."""


class SparingThreads(Threads):
    """Pool with few threads while work is quick, and up to `count` while work waits for something.

    Python's pool starts a thread whenever none is idle. So a burst of quick calls leaves a thread
    for each, and these then take turns at later calls, which costs time and gains nothing.
    """

    def __init__(self, count: int, name: str, timers: TimerThread) -> None:
        """Start the first thread.

        Args:
            count: Most threads.
            name: Beginning of their names.
            timers: Calls that check whether threads are held up.

        Raises:
            RuntimeError: The system cannot start it.
        """
        self._timers, self._submitted_count, self._is_watched = timers, 0, False
        super().__init__(count, name)

    @property
    def thread_count(self) -> int:
        """Threads that have been started."""
        return len(self._threads)

    def _adjust_thread_count(self) -> None:
        """Start a thread if there are few; called under the lock by `submit`."""
        self._submitted_count += 1
        if len(self._threads) < FEW:
            super()._adjust_thread_count()
        elif not self._idle_semaphore.acquire(timeout=0):
            self._watch()

    def _watch(self) -> None:
        """Check later whether the work that waits now was taken."""
        if self._is_watched:
            return
        taken_count = self._submitted_count - self._work_queue.qsize()
        try:
            self._timers.set(HELD_UP_S, partial(self._grow, taken_count))
        except RuntimeError:  # no thread for timers, so hardly one for work
            super()._adjust_thread_count()
        else:
            self._is_watched = True

    def _grow(self, taken_count: int) -> None:
        """Start a thread for each piece of work that waits, if none was taken since."""
        with self._shutdown_lock:
            self._is_watched = False
            waiting_count = self._work_queue.qsize()
            if not waiting_count or self._shutdown:
                return
            if self._submitted_count - waiting_count == taken_count:
                for _ in range(waiting_count):
                    super()._adjust_thread_count()
            self._watch()
