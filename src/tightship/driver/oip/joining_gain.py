"""Decides whether joined requests gain more time than it takes to wake their threads together."""

from collections import deque

WORTH_NS = 60_000
"""Duration of runs alone from which joining can gain more than waking takes."""
LEAST_GAIN = 0.1
"""Part of the time of a run alone that a joined request must save."""
RUNS_KEPT = 8
"""Latest runs of which the shortest decides, because a first run of a batch also plans it."""
TRIED_AGAIN = 256
"""Runs alone after which joining is tried again; twice as many after each attempt."""
TRIED_AGAIN_MAX = 64 * TRIED_AGAIN


class JoiningGain:
    """Times of a model's requests that ran alone, and of those that were joined.

    Attributes:
        pays: Whether joining is worth it, as far as is known: requests are joined to find out.
    """

    def __init__(self, worth_ns: int | None = None) -> None:
        """Know none.

        Args:
            worth_ns: Duration of runs alone from which joining can gain; `WORTH_NS` by default.
        """
        self.pays = True
        self._worth_ns = worth_ns
        self._alone_ns: deque[int] = deque(maxlen=RUNS_KEPT)
        self._joined_ns: deque[int] = deque(maxlen=RUNS_KEPT)
        self._refused, self._refused_max = 0, TRIED_AGAIN

    def note(self, duration_ns: int, requests: int) -> None:
        """Note how long a run of so many requests took."""
        if requests > 1:
            self._joined_ns.append(duration_ns // requests)
        else:
            self._alone_ns.append(duration_ns)
            self._refused += not self.pays
        if self._refused >= self._refused_max:  # other work may have made joined runs slow
            self._refused_max = min(2 * self._refused_max, TRIED_AGAIN_MAX)
            self._refused = 0
            self._joined_ns.clear()
        self.pays = self._decided()

    def _decided(self) -> bool:
        alone, joined = tuple(self._alone_ns), tuple(self._joined_ns)  # others note meanwhile
        worth_ns = WORTH_NS if self._worth_ns is None else self._worth_ns
        if not alone or min(alone) < worth_ns or len(joined) < RUNS_KEPT:
            return not alone or min(alone) >= worth_ns
        return min(joined) <= (1 - LEAST_GAIN) * min(alone)
