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
    """Connection of a client since a time of `monotonic_ns`, and whether its protocol has it."""

    peer: str
    since_ns: int
    is_made: Callable[[], bool]


class Arrivals:
    """Tasks that make connections, on one event loop.

    Room is made by the address with the most handshakes, so that one address that lets them wait
    cannot exclude others. Connections that are made, without a handshake at once, are not ended:
    their clients are served. If a task is cancelled between that and its end, uvloop closes a
    connection without TLS and never says so, and one with TLS keeps its place until its client
    agrees to the end.
    """

    def __init__(
        self, failed: Callable[[str, BaseException], None], *, have_handshakes: bool = True
    ) -> None:
        """Call `failed` with the address of a client whose handshake failed, and the error."""
        self._failed, self._have_handshakes = failed, have_handshakes
        self._tasks: dict[asyncio.Task[Any], _Arrival] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, task: "asyncio.Task[Any]", peer: str, is_made: Callable[[], bool]) -> None:
        """Add the task that makes a connection.

        Args:
            task: The task.
            peer: Address of the client.
            is_made: Returns whether the protocol has heard of its connection.
        """
        self._tasks[task] = _Arrival(peer, monotonic_ns(), is_made)
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
            if each.since_ns <= last_ns and not each.is_made()
        ]
        if not late:
            return False
        *_, task = min(late, key=lambda each: each[:2])
        del self._tasks[task]
        task.cancel()
        return True

    async def end(self) -> None:
        """End all handshakes, and wait for connections that are made, or made without one."""
        arrivals = dict(self._tasks)
        for task, each in arrivals.items():
            if self._have_handshakes and not each.is_made():
                task.cancel()
        await asyncio.gather(*arrivals, return_exceptions=True)

    def _end(self, task: "asyncio.Task[Any]") -> None:
        arrival = self._tasks.pop(task, None)
        if task.cancelled() or arrival is None:
            return
        error = task.exception()
        if error is not None:
            self._failed(arrival.peer, error)
