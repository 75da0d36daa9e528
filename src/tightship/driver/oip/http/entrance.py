"""Acceptance of HTTP connections while there are descriptors and places."""

import asyncio
import socket
from typing import Any

from tightship.driver.oip.http.connection import HttpConnection, Shared
from tightship.driver.oip.http.message import error_response
from tightship.driver.server.accepting import Acceptor, Shortage

AT_ONCE = 64
"""Connections accepted in one step of the event loop."""
STUCK_S = 0.05
"""Seconds between attempts to accept a client for which no descriptor is left."""
EXTRA = 64
"""Connections beyond those with places, which wait for one or are being refused."""


class HttpEntrance:
    """Accepts connections on the event loop.

    asyncio's own servers log a traceback for each attempt to accept without a descriptor, a hundred
    in a row, and double these attempts every second.
    """

    def __init__(self, listener: socket.socket, shared: Shared) -> None:
        """Take over a listening socket."""
        listener.settimeout(0)
        self._shared = shared
        self._open_max = 2 * shared.limits.connections_max + EXTRA
        full = error_response(503, "too many connections are open or ending; try again later")
        self._farewell = full.head + b"Connection: close\r\n\r\n" + b"".join(full.parts)
        self._acceptor = Acceptor(listener, "HTTP", farewell=self._farewell)
        self._crowd = Shortage(f"{self._open_max} connections by HTTP are open, waiting or ending")
        self._loop = asyncio.get_running_loop()
        self._arriving = set[asyncio.Task[Any]]()

    def open(self) -> None:
        """Begin to accept."""
        self._loop.add_reader(self._acceptor.fileno(), self._accept)

    def close(self) -> None:
        """Stop accepting."""
        self._crowd.end()
        if self._acceptor.fileno() >= 0:
            self._loop.remove_reader(self._acceptor.fileno())
            self._acceptor.close()

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            accepted = self._acceptor.admit()
            if accepted is None:
                break
            if len(self._shared.connections) + len(self._arriving) >= self._open_max:
                self._refuse(accepted)
            else:
                self._crowd.end_if_calm()
                self._begin(accepted)
        if self._acceptor.is_stuck:
            self._loop.remove_reader(self._acceptor.fileno())
            self._loop.call_later(STUCK_S, self._open_again)

    def _open_again(self) -> None:
        if self._acceptor.fileno() >= 0:
            self.open()

    def _begin(self, accepted: socket.socket) -> None:
        accepted.settimeout(0)
        task = self._loop.create_task(
            self._loop.connect_accepted_socket(lambda: HttpConnection(self._shared), accepted)
        )
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    def _refuse(self, accepted: socket.socket) -> None:
        self._crowd.refused()
        with accepted:
            try:
                accepted.send(self._farewell, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except OSError:
                return
