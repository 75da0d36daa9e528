"""Clients that hang up while they wait for an answer, and so while nothing is read from them."""

import asyncio
import select
from collections.abc import Callable

_ENDS = select.EPOLLRDHUP | select.EPOLLONESHOT


class HangUps:
    """Watches sockets for the end of what their clients send; all calls are of one event loop.

    A client that ends its side alone counts as gone too: until an answer is written, nothing else
    is known of one that has closed its socket.
    """

    def __init__(self) -> None:
        """Watch in the running loop."""
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._gone: dict[int, Callable[[], None]] = {}
        self._loop.add_reader(self._epoll.fileno(), self._notice)

    def watch(self, file: int, gone: Callable[[], None]) -> None:
        """Call `gone` once, soon after the client of a socket hangs up."""
        self._epoll.register(file, _ENDS)
        self._gone[file] = gone

    def unwatch(self, file: int) -> None:
        """Watch a socket, still open, no more. Harmless if it is not watched."""
        if self._gone.pop(file, None) is not None:
            self._epoll.unregister(file)

    def _notice(self) -> None:
        for file, _ in self._epoll.poll(0):
            gone = self._gone.get(file)
            if gone is not None:
                self.unwatch(file)
                gone()

    def close(self) -> None:
        """Watch nothing any more."""
        self._loop.remove_reader(self._epoll.fileno())
        self._gone.clear()
        self._epoll.close()
