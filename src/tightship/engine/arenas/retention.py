"""How long memory stays that a run needed once."""

from collections import deque
from dataclasses import dataclass, field

RUNS = 8
"""Runs after which memory that none of them needed may go before its time."""
BYTES_PER_NS = 5
"""How fast memory that was given back is had again: zeroed as it is touched, in small pages."""
SHARE = 20
"""Runs take so many times as long as having memory again that goes before its time."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What an idle pool keeps.

    Attributes:
        idle_s: Seconds after which memory goes back that no run has needed since; None keeps all.
        kept_bytes: What stays however long nobody needs it.
    """

    idle_s: float | None = 2.0
    kept_bytes: int = 2 << 20

    @property
    def idle_ns(self) -> int | None:
        """`idle_s` as clocks count."""
        return None if self.idle_s is None else int(self.idle_s * 1e9)


@dataclass(slots=True)
class SlidingMaximum:
    """The largest of the amounts noted lately; what they are noted by never falls."""

    _falling: deque[tuple[int, int]] = field(default_factory=deque)

    def note(self, when: int, amount: int) -> None:
        """What is smaller and older can be the largest no more."""
        while self._falling and self._falling[-1][1] <= amount:
            self._falling.pop()
        self._falling.append((when, amount))

    def largest(self, since: int) -> int:
        """Of those noted since then; 0 if there is none. Older ones are forgotten."""
        while self._falling and self._falling[0][0] < since:
            self._falling.popleft()
        return self._falling[0][1] if self._falling else 0


@dataclass(slots=True)
class Demand:
    """What runs have needed of one piece of memory, by time and by their number."""

    busy_ns: int = 0
    """How long runs have had it since it last grew."""
    _by_time: SlidingMaximum = field(default_factory=SlidingMaximum)
    _by_number: SlidingMaximum = field(default_factory=SlidingMaximum)

    def note(self, number: int, now_ns: int, took_ns: int, needed_bytes: int) -> None:
        """A run has ended."""
        self.busy_ns += took_ns
        self._by_time.note(now_ns, needed_bytes)
        self._by_number.note(number, needed_bytes)

    def wanted_bytes(self, size_bytes: int, since_ns: int, since_number: int) -> int:
        """What of `size_bytes` is to stay.

        All that a run has needed since a time; of that, what only runs before a number needed
        goes too, once having it again would take a twentieth of the time that runs had it.
        """
        timely = self._by_time.largest(since_ns)
        lately = self._by_number.largest(since_number)
        if SHARE * (size_bytes - lately) <= BYTES_PER_NS * self.busy_ns:
            return min(timely, lately)
        return timely
