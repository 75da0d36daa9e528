"""Gives freed heap back to the system while a driver runs."""

import resource
import threading

from tightship._core import release_heap

PERIOD_S = 2.0
FAULTS_MIN = 16
"""Page faults since the last trim from which another is worth its time: a tenth of a millisecond.
Few, because one fault may bring a huge page."""


class HeapTrimmer:
    """A thread that trims the heap after memory was touched, and else only looks at a counter.

    The allocator keeps what large messages leave behind: hundreds of megabytes after a burst of
    calls. It returns all of it where threads share one heap (`use_one_heap`).
    """

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tightship-trim")

    def start(self) -> None:
        """Trim from now on."""
        self._thread.start()

    def stop(self) -> None:
        """End; waits for a trim that is under way."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        trimmed_at = 0
        while not self._ended.wait(PERIOD_S):
            if _faults() - trimmed_at >= FAULTS_MIN:
                release_heap()
                trimmed_at = _faults()


def _faults() -> int:
    """Minor page faults of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
