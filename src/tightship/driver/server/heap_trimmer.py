"""Periodic return of freed heap to the system while a driver runs."""

import resource
import threading

from tightship._core import release_heap

PERIOD_S = 2.0
FAULTS_MIN = 16
"""Page faults since the last trim from which another, of 0.1 ms, is worthwhile.

Few, because one fault may bring a huge page.
"""


class HeapTrimmer:
    """Thread that trims the heap if memory was touched, and otherwise only reads a counter.

    The allocator keeps hundreds of megabytes after a burst of large messages. It returns them all
    if threads share one heap (`use_one_heap`).
    """

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tightship-trim")

    def start(self) -> None:
        """Begin to trim."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after a trim under way."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        trimmed_at = 0
        while not self._ended.wait(PERIOD_S):
            if _faults() - trimmed_at >= FAULTS_MIN:
                release_heap()
                trimmed_at = _faults()


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
