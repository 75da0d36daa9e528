"""Detection of clients that disconnect while they wait for a reply."""

import asyncio
import select
from collections.abc import Callable

_ENDS = select.EPOLLRDHUP | select.EPOLLONESHOT


class HangUps:
    """Watches sockets for the end of the client's side, within one event loop.

    A half-closed connection counts as gone: until a reply is written, it cannot be distinguished
    from a closed one.
    """

    def __init__(self) -> None:
        """Watch in the running loop."""
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._gone: dict[int, Callable[[], None]] = {}
        self._loop.add_reader(self._epoll.fileno(), self._notice)

    def watch(self, file: int, gone: Callable[[], None]) -> None:
        """Call `gone` once, soon after the client of a socket disconnects."""
        self._epoll.register(file, _ENDS)
        self._gone[file] = gone

    def unwatch(self, file: int) -> None:
        """Stop watching a socket, which must be open. Harmless if it is not watched."""
        if self._gone.pop(file, None) is not None:
            self._epoll.unregister(file)

    def _notice(self) -> None:
        for file, _ in self._epoll.poll(0):
            gone = self._gone.get(file)
            if gone is not None:
                self.unwatch(file)
                gone()

    def close(self) -> None:
        """Stop watching."""
        self._loop.remove_reader(self._epoll.fileno())
        self._gone.clear()
        self._epoll.close()
