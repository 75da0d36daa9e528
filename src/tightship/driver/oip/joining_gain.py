"""Decides whether joined requests gain more time than it takes to wake their threads together."""

from collections import deque

WORTH_NS = 60_000
"""Duration of runs alone from which joining can gain more than waking takes."""
LEAST_GAIN = 0.1
"""Part of the time of a run alone that a joined request must save."""
RUNS_KEPT = 8
"""Latest runs of which the shortest decides, because a first run of a batch also plans it."""


class JoiningGain:
    """Times of a model's requests that ran alone, and of those that were joined."""

    def __init__(self) -> None:
        """Know none."""
        self._alone_ns: deque[int] = deque(maxlen=RUNS_KEPT)
        self._joined_ns: deque[int] = deque(maxlen=RUNS_KEPT)

    def note(self, duration_ns: int, requests: int) -> None:
        """Note how long a run of so many requests took."""
        if requests == 1:
            self._alone_ns.append(duration_ns)
        else:
            self._joined_ns.append(duration_ns // requests)

    @property
    def pays(self) -> bool:
        """Whether joining is worth it, as far as is known: requests are joined to find out."""
        if not self._alone_ns:
            return True
        alone_ns = min(tuple(self._alone_ns))
        joined_ns = min(tuple(self._joined_ns), default=0)
        return alone_ns >= WORTH_NS and joined_ns <= (1 - LEAST_GAIN) * alone_ns
