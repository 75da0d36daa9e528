"""Thread that makes calls at due times."""

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count

from tightship.driver.types.timers import Timers


class TimerThread:
    """Timed calls, made one after another by a thread that ends with the last of them.

    May be used from several threads. Calls must be quick.
    """

    def __init__(self) -> None:
        """Create a timer without a thread; `set` starts one."""
        self._changed = threading.Condition()
        self._timers = Timers()
        self._calls: dict[int, Callable[[], None]] = {}
        self._numbers = count()
        self._wakes_ns: int | None = None

    def set(self, wait_s: float, call: Callable[[], None]) -> int:
        """Schedule `call` in `wait_s` seconds; return a number for `cancel`.

        Raises:
            RuntimeError: The system cannot start the thread.
        """
        due_ns = time.monotonic_ns() + int(wait_s * 1e9)
        with self._changed:
            if self._wakes_ns is None:
                threading.Thread(target=self._watch, daemon=True).start()
                self._wakes_ns = due_ns
            number = next(self._numbers)
            self._calls[number] = call
            self._timers.set(number, due_ns)
            if due_ns < self._wakes_ns:
                self._changed.notify()
        return number

    def cancel(self, number: int) -> None:
        """Cancel a call, unless it was made already."""
        with self._changed:
            if self._calls.pop(number, None) is not None:
                self._timers.cancel(number)

    def _watch(self) -> None:
        with ExitStack() as failing:
            failing.callback(self._stop)
            while (call := self._next()) is not None:
                call()
            failing.pop_all()

    def _stop(self) -> None:
        with self._changed:
            self._wakes_ns = None

    def _next(self) -> Callable[[], None] | None:
        """Wait for the next call that is due; None if none is scheduled."""
        with self._changed:
            while (next_ns := self._timers.next_ns()) is not None:
                number = self._timers.take_due(now_ns := time.monotonic_ns())
                if number is not None:
                    return self._calls.pop(number)
                self._wakes_ns = next_ns
                self._changed.wait((next_ns - now_ns) / 1e9)
            self._wakes_ns = None
            return None
