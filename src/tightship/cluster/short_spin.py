"""Sleeps most of a wait that would otherwise keep a processor busy."""

import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

LOOKED_BACK = 8
"""Waits of which the shortest tells how long the next is at least."""
SLEPT_SHARE = 0.8
"""Part of that time that is slept."""

T = TypeVar("T")


class ShortSpin:
    """Calls a function that spins until something is there, after most of the time it lately took.

    Ray reads its channels so (2.60): a caller that waits takes a processor from the stages that it
    waits for. A wait that is shorter than the last ones ends late, be it with an error, by at most
    `SLEPT_SHARE` of the shortest of them; each such one shortens the next sleep.
    """

    def __init__(self) -> None:
        """Know of no wait yet; the first is not slept."""
        self._waits: deque[float] = deque([0.0], LOOKED_BACK)

    def result(self, wait: Callable[[], T]) -> T:
        """Return what `wait` does."""
        started = time.monotonic()
        time.sleep(SLEPT_SHARE * min(self._waits))
        found = wait()
        self._waits.append(time.monotonic() - started)
        return found
