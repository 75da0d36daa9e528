"""Places for connections: those without a request are closed to make room for new ones."""

import asyncio
import enum
from collections import Counter
from time import monotonic_ns
from typing import Protocol

from tightship.driver.oip.limits import RECENT_NS, WAIT_S, EndpointLimits

TICK_S = 0.05


class Stage(enum.IntEnum):
    """States in which a connection may be closed to make room, in this order."""

    IDLE = 0
    """No request has begun."""
    HEAD = 1
    """The headers of a request are not complete."""
    SLOW = 2
    """A body comes too slowly, or the client does not read a response."""


Removable = tuple[Stage, int]
"""State of a connection that can make room, and since when, by `monotonic_ns`."""


class Occupant(Protocol):
    """Connection that waits for a place or has one.

    Attributes:
        peer: Address of the client.
    """

    peer: str

    def admitted(self) -> None:
        """Handle the grant of a place."""

    def turned_away(self) -> None:
        """Handle the lack of a place."""

    def removable(self) -> Removable | None:
        """Return state and time if it can make room; None while a request is served."""

    def vacate(self) -> bool:
        """Close at once; return False if bytes have come meanwhile."""


class Places:
    """Limited places for connections, others wait; for one event loop.

    Room is made by the peer with the most connections, so that one peer cannot exclude others.
    """

    def __init__(self, limits: EndpointLimits) -> None:
        self._limits = limits
        self._placed = set[Occupant]()
        self._counts = Counter[str]()
        self._waiting = dict[Occupant, int]()
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, connection: Occupant) -> bool:
        """Whether it has a place at once; otherwise it will be admitted or turned away."""
        if not self._waiting and self._has_room():
            self._place(connection)
            return True
        self._waiting[connection] = monotonic_ns() + int(WAIT_S * 1e9)
        self._await_tick()
        return False

    def leave(self, connection: Occupant) -> None:
        """Release a place. Harmless when repeated."""
        self._waiting.pop(connection, None)
        if connection in self._placed:
            self._remove(connection)
            self._serve()

    def end_idle(self) -> None:
        """Close connections that have been idle for longer than the limit."""
        first_ns = monotonic_ns() - int(self._limits.idle_s * 1e9)
        for connection in tuple(self._placed):
            match connection.removable():
                case (Stage.IDLE, since_ns) if since_ns <= first_ns and connection.vacate():
                    self._remove(connection)
        self._serve()

    def _place(self, connection: Occupant) -> None:
        self._placed.add(connection)
        self._counts[connection.peer] += 1

    def _remove(self, connection: Occupant) -> None:
        self._placed.remove(connection)
        self._counts[connection.peer] -= 1
        if not self._counts[connection.peer]:
            del self._counts[connection.peer]

    def _serve(self) -> None:
        """Admit waiting connections, those of peers with fewest first, and turn away late ones."""
        while self._waiting and self._has_room():
            connection = min(self._waiting, key=lambda each: self._counts[each.peer])
            del self._waiting[connection]
            self._place(connection)
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
        """Whether there is a place, if need be after closing a connection."""
        return len(self._placed) < self._limits.connections_max or self._make_room()

    def _make_room(self) -> bool:
        """Close a connection that has been removable for some time."""
        last_ns = monotonic_ns() - RECENT_NS
        found = []
        for connection in self._placed:
            removable = connection.removable()
            if removable is not None and removable[1] <= last_ns:
                found.append((-self._counts[connection.peer], *removable, connection))
        for *_, connection in sorted(found, key=lambda each: each[:3]):
            if connection.vacate():
                self._remove(connection)
                return True
        return False
