"""What is done when its time has come, unless it is not needed any more."""

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count

from tightship.driver.types.timers import Timers


class Alarms:
    """Calls that are due later, made one after another by one thread, which ends with the last.

    May be used from several threads. No call may wait for long.
    """

    def __init__(self) -> None:
        """Starts nothing before it is needed."""
        self._changed = threading.Condition()
        self._timers = Timers()
        self._calls: dict[int, Callable[[], None]] = {}
        self._numbers = count()
        self._wakes_ns: int | None = None

    def set(self, wait_s: float, call: Callable[[], None]) -> int:
        """Have `call` called after a while; returns the number of the alarm.

        Raises:
            RuntimeError: The system has no thread left to watch it.
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
        """Do not make a call that is not made yet; harmless if it is."""
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
        """The next call, as soon as it is due; None if nothing is to come."""
        with self._changed:
            while (next_ns := self._timers.next_ns()) is not None:
                number = self._timers.take_due(now_ns := time.monotonic_ns())
                if number is not None:
                    return self._calls.pop(number)
                self._wakes_ns = next_ns
                self._changed.wait((next_ns - now_ns) / 1e9)
            self._wakes_ns = None
            return None
