"""Connections that are being made: with TLS, those whose handshake is under way."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic_ns
from typing import Any

from tightship.driver.oip.limits import RECENT_NS


@dataclass(frozen=True, slots=True)
class _Arrival:
    """Address of a client, and when it connected, by `monotonic_ns`."""

    peer: str
    since_ns: int


class Arrivals:
    """Tasks that make connections, on one event loop.

    Room is made by the address with the most handshakes, so that one address that lets them wait
    cannot exclude others. Connections without a handshake are made at once and not ended: if a
    task is cancelled between that and its end, uvloop closes the connection and never says so.
    """

    def __init__(
        self, failed: Callable[[str, BaseException], None], *, have_handshakes: bool = True
    ) -> None:
        """Call `failed` with the address of a client whose handshake failed, and the error."""
        self._failed, self._have_handshakes = failed, have_handshakes
        self._tasks: dict[asyncio.Task[Any], _Arrival] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, task: "asyncio.Task[Any]", peer: str) -> None:
        """Add the task that makes a connection."""
        self._tasks[task] = _Arrival(peer, monotonic_ns())
        task.add_done_callback(self._end)

    def make_room(self) -> bool:
        """End the oldest handshake of the address with the most, if it has had its time."""
        if not self._have_handshakes:
            return False
        last_ns = monotonic_ns() - RECENT_NS
        counts = Counter(each.peer for each in self._tasks.values())
        late = [
            (-counts[each.peer], each.since_ns, task)
            for task, each in self._tasks.items()
            if each.since_ns <= last_ns
        ]
        if not late:
            return False
        *_, task = min(late, key=lambda each: each[:2])
        del self._tasks[task]
        task.cancel()
        return True

    async def end(self) -> None:
        """End all handshakes, and wait for connections that are made without one."""
        tasks = tuple(self._tasks)
        for task in tasks if self._have_handshakes else ():
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, task: "asyncio.Task[Any]") -> None:
        arrival = self._tasks.pop(task, None)
        if task.cancelled() or arrival is None:
            return
        error = task.exception()
        if error is not None:
            self._failed(arrival.peer, error)
