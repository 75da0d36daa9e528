"""Watches what a program and its descendants hold, by reading them again and again."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from tightship.cli.mapping_kinds import KindBytes, kinds_of
from tightship.cli.process_tree import Holding, holding, with_descendants

FIRST_SECONDS = 0.001
"""Time to the second look; later ones follow after twice the time each, up to `MOST_SECONDS`."""
MOST_SECONDS = 0.005
_COST_FACTOR = 20
"""Least time between two readings, as a multiple of the processor time of one, which it bounds."""
_GROWTH = 1.02
"""Growth of the largest process since its mappings were read, from which they are read again."""


@dataclass(slots=True)
class Held:
    """Most that was held, in bytes; peaks of data lie at a look, a shorter one is missed.

    Attributes:
        resident_bytes: Most that one process had resident.
        data_bytes: Most data of one process, which a limit bounds.
        together_resident_bytes: Largest sum over the processes, shared pages counted in each.
        together_data_bytes: Largest sum of data.
        process_count: Most processes at once.
        kinds: Mappings of the process with most data, at about that time.
    """

    resident_bytes: int = 0
    data_bytes: int = 0
    together_resident_bytes: int = 0
    together_data_bytes: int = 0
    process_count: int = 0
    kinds: Mapping[str, KindBytes] = field(default_factory=dict)


class Watch:
    """Watches a process and its descendants; those that outlive their parents stay watched."""

    def __init__(self, pid: int) -> None:
        self.held = Held()
        self._pids = [pid]
        self._kinds_at = 0.0
        self._pause = FIRST_SECONDS
        self._next_kinds = 0.0
        self._next_search = time.perf_counter() + FIRST_SECONDS  # the program may end first

    def look(self) -> float:
        """Read all known processes, after a search for more if it is time to.

        Returns:
            Seconds until the next look is worth its cost.
        """
        if time.perf_counter() >= self._next_search:
            self._search()
        start = time.thread_time()
        found = {pid: one for pid in self._pids if (one := holding(pid)) is not None}
        self._pids = list(found)
        cost = time.thread_time() - start
        self._note(found)
        self._pause = min(MOST_SECONDS, 2 * self._pause)
        return max(self._pause, _COST_FACTOR * cost)

    def _search(self) -> None:
        start = time.thread_time()
        self._pids = with_descendants(self._pids)
        cost = time.thread_time() - start
        self._next_search = time.perf_counter() + max(self._pause, _COST_FACTOR * cost)

    def _note(self, found: Mapping[int, Holding]) -> None:
        held, holdings = self.held, found.values()
        for one in holdings:
            held.resident_bytes = max(held.resident_bytes, one.peak_resident_bytes)
        resident = sum(one.resident_bytes for one in holdings)
        held.together_resident_bytes = max(held.together_resident_bytes, resident)
        data = sum(one.data_bytes for one in holdings)
        held.together_data_bytes = max(held.together_data_bytes, data)
        held.process_count = max(held.process_count, len(found))
        if found:
            self._note_largest(max(found, key=lambda pid: found[pid].data_bytes), found)

    def _note_largest(self, pid: int, found: Mapping[int, Holding]) -> None:
        held, size = self.held, found[pid].data_bytes
        held.data_bytes = max(held.data_bytes, size)
        weight = size + found[pid].resident_bytes
        if weight <= _GROWTH * self._kinds_at or time.perf_counter() < self._next_kinds:
            return
        start = time.thread_time()
        with suppress(OSError):  # it has ended, or became another user's
            kinds = kinds_of(pid)
            if kinds:  # none if it ended meanwhile and was not waited for
                held.kinds, self._kinds_at = kinds, weight
        cost = time.thread_time() - start
        self._next_kinds = time.perf_counter() + _COST_FACTOR * cost
