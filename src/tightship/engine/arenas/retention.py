"""Decides how long memory that a run needed is kept for further runs."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

RUNS = 8
"""Runs after which memory that none of them needed may be given back before `idle_s`."""
BYTES_PER_NS = 5
"""Rate at which memory can be had again: zeroed as it is touched, in small pages."""
SHARE = 20
"""Ratio of run time to the time of having memory again, above which it is given back early."""


class Retention(NamedTuple):
    """Memory that an idle pool keeps.

    Attributes:
        idle_s: Seconds without a run that needs it after which memory is given back; None keeps
            all.
        kept_bytes: Bytes that are kept however long they are idle.
    """

    idle_s: float | None = 2.0
    kept_bytes: int = 2 << 20

    @property
    def idle_ns(self) -> int | None:
        """`idle_s` in nanoseconds."""
        return None if self.idle_s is None else int(self.idle_s * 1e9)


@dataclass(slots=True)
class SlidingMaximum:
    """Maximum of amounts noted within a window; the times or numbers given never fall."""

    _falling: deque[tuple[int, int]] = field(default_factory=deque)

    def note(self, when: int, amount: int) -> None:
        """Note an amount; older amounts that are no larger can never be the maximum again."""
        while self._falling and self._falling[-1][1] <= amount:
            self._falling.pop()
        self._falling.append((when, amount))

    def largest(self, since: int) -> int:
        """Return the largest amount noted at or after `since`, or 0; forget older ones."""
        while self._falling and self._falling[0][0] < since:
            self._falling.popleft()
        return self._falling[0][1] if self._falling else 0


@dataclass(slots=True)
class Demand:
    """Sizes that runs needed of one block of memory, by time and by number of the run."""

    busy_ns: int = 0
    """Nanoseconds that runs have used the memory since it last grew."""
    _by_time: SlidingMaximum = field(default_factory=SlidingMaximum)
    _by_number: SlidingMaximum = field(default_factory=SlidingMaximum)

    def note(self, number: int, now_ns: int, took_ns: int, needed_bytes: int) -> None:
        """Note the needs of a run that has ended."""
        self.busy_ns += took_ns
        self._by_time.note(now_ns, needed_bytes)
        self._by_number.note(number, needed_bytes)

    def wanted_bytes(self, size_bytes: int, since_ns: int, since_number: int) -> int:
        """Return how many of `size_bytes` to keep.

        Keep the most that a run has needed since `since_ns`. Memory that no run since
        `since_number` needed is given back too, once having it again would take a twentieth of the
        time that runs had it.
        """
        timely = self._by_time.largest(since_ns)
        lately = self._by_number.largest(since_number)
        if SHARE * (size_bytes - lately) <= BYTES_PER_NS * self.busy_ns:
            return min(timely, lately)
        return timely
