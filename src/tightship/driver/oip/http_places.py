"""Which connections may stay: a new one has the place of the one that was idle longest."""

import asyncio
from collections import deque
from time import monotonic_ns
from typing import Protocol

from tightship.driver.oip.limits import FaceLimits

RECENT_NS = 250_000_000
"""After a request its client is given this long to send the next, which may be on its way."""
WAIT_S = 1.0
"""How long a new connection waits for a place before it is turned away."""
TICK_S = 0.05


class Occupant(Protocol):
    """A connection that asks for a place, or has one."""

    def admitted(self) -> None:
        """It has one now."""

    def turned_away(self) -> None:
        """There is none."""

    def idle_since_ns(self) -> int | None:
        """Since when nothing is under way, by `monotonic_ns`; None if something is."""

    def vacate(self) -> bool:
        """End at once; False if a request has come meanwhile."""


class Places:
    """As many connections as there are places, the others waiting for one; of one event loop."""

    def __init__(self, limits: FaceLimits) -> None:
        self._limits = limits
        self._placed = set[Occupant]()
        self._waiting = dict[Occupant, int]()
        self._longest_idle = deque[tuple[int, Occupant]]()
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, connection: Occupant) -> bool:
        """Whether it has a place; else it will be admitted or turned away."""
        if not self._waiting and self._has_room():
            self._placed.add(connection)
            return True
        self._waiting[connection] = monotonic_ns() + int(WAIT_S * 1e9)
        self._await_tick()
        return False

    def leave(self, connection: Occupant) -> None:
        """It needs no place any more. Harmless when repeated."""
        self._waiting.pop(connection, None)
        if connection in self._placed:
            self._placed.remove(connection)
            self._serve()

    def end_idle(self) -> None:
        """End connections that have been idle for longer than the limits say."""
        first_ns = monotonic_ns() - int(self._limits.idle_s * 1e9)
        for since_ns, connection in self._idle():
            if since_ns <= first_ns and connection.vacate():
                self._placed.remove(connection)
        self._serve()

    def _serve(self) -> None:
        """Admit those that wait, in their order, or turn them away."""
        while self._waiting and self._has_room():
            connection = next(iter(self._waiting))
            del self._waiting[connection]
            self._placed.add(connection)
            connection.admitted()
        now_ns = monotonic_ns()
        late = [each for each, until_ns in self._waiting.items() if until_ns <= now_ns]
        for connection in late:
            del self._waiting[connection]
            connection.turned_away()
        self._await_tick()

    def _await_tick(self) -> None:
        if self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._serve()

    def _has_room(self) -> bool:
        """Whether there is a place, if need be that of another connection."""
        return len(self._placed) < self._limits.connections_max or self._make_room()

    def _make_room(self) -> bool:
        """End the connection that was idle longest, of those that were for some time.

        Who was found idle is asked again before others are looked for: nobody has been for longer.
        """
        if self._end_one():
            return True
        first_ns = monotonic_ns() - RECENT_NS
        self._longest_idle.extend(each for each in self._idle() if each[0] <= first_ns)
        return self._end_one()

    def _end_one(self) -> bool:
        while self._longest_idle:
            since_ns, connection = self._longest_idle.popleft()
            if connection.idle_since_ns() == since_ns and connection.vacate():
                self._placed.discard(connection)
                return True
        return False

    def _idle(self) -> list[tuple[int, Occupant]]:
        """Those that are, and since when; the longest first."""
        since = ((each.idle_since_ns(), each) for each in self._placed)
        found = [(since_ns, each) for since_ns, each in since if since_ns is not None]
        return sorted(found, key=lambda each: each[0])
