"""Limit on the lines of a log in a time, beyond which they are counted instead."""

import logging
import threading
from time import monotonic

LINES_A_SECOND = 1000
"""Lines of the default limit: some 400 KB a second."""


class LogLimit(logging.Filter):
    """Lets so many records pass in each period, and errors always.

    The first record that passes afterwards is preceded by one with the count of those left out.
    """

    def __init__(self, handler: logging.Handler, lines_max: int, period_s: float = 1.0) -> None:
        """Limit a handler.

        Args:
            handler: Handler that writes the counts.
            lines_max: Records that pass in a period.
            period_s: Seconds of the period.
        """
        super().__init__()
        self._handler, self._max, self._period_s = handler, lines_max, period_s
        self._began_s, self._passed, self._left_out = monotonic(), 0, 0
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record passes."""
        if record.levelno >= logging.ERROR:
            return True
        left_out = 0
        with self._lock:
            now_s = monotonic()
            if now_s - self._began_s >= self._period_s:
                left_out, self._left_out = self._left_out, 0
                self._began_s, self._passed = now_s, 0
            passes = self._passed < self._max
            self._passed += passes
            self._left_out += not passes
        if left_out:
            self._handler.emit(_counted(left_out))
        return passes


def _counted(count: int) -> logging.LogRecord:
    text = "%d lines were left out, because of `--log-limit`."
    return logging.LogRecord(__name__, logging.WARNING, "", 0, text, (count,), None)
