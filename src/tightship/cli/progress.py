"""Shows the progress of long work as a line on standard error."""

import sys
import time
from collections.abc import Callable
from typing import Self, TextIO

from tightship.cli.output import obeys

_SILENT_SECONDS = 0.5
_INTERVAL_SECONDS = 0.1
_BAR_WIDTH = 24
_ERASE = "\r\x1b[K"


class Progress:
    """A progress line; call it with (done, total) during the work.

    Nothing is written in the first half second, to a stream that is not a terminal or is a dumb
    one, or more than ten times a second. The line is erased when the work ends.
    """

    def __init__(
        self,
        label: str,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label = label
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._next = clock() + _SILENT_SECONDS
        self._is_shown = False
        self._is_terminal = obeys(self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            self._write(_ERASE)
            self._is_shown = False

    def __call__(self, done: int, total: int) -> None:
        """Show `done` of `total` units of work, if it is time to."""
        if not self._is_terminal or self._clock() < self._next:
            return
        self._next = self._clock() + _INTERVAL_SECONDS
        self._is_shown = True
        share = min(1.0, done / total) if total else 1.0
        filled = round(share * _BAR_WIDTH)
        bar = "#" * filled + "." * (_BAR_WIDTH - filled)
        self._write(f"{_ERASE}{self._label} [{bar}] {share:4.0%}")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
