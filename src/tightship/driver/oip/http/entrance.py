"""Entrance of HTTP connections: accepts them within the reserve of descriptors."""

import asyncio
import socket
from typing import TYPE_CHECKING, Any, Protocol

from tightship.driver.oip.http.arrivals import Arrivals
from tightship.driver.oip.http.message import error_response
from tightship.driver.oip.refusal_log import RefusalLog
from tightship.driver.server.accepting import Acceptor, Shortage

if TYPE_CHECKING:
    from tightship.driver.oip.admission.certificate import Certificate
    from tightship.driver.oip.http.connection import HttpConnection

AT_ONCE = 64
"""Connections accepted in one step of the event loop."""
STUCK_S = 0.05
"""Seconds between attempts to accept a client for which no descriptor is left."""
EXTRA = 64
"""Connections beyond those with places, which wait for one or are being refused."""


class Entered(Protocol):
    """Server as its entrance uses it."""

    @property
    def connections_max(self) -> int:
        """Most connections with places."""

    @property
    def connection_count(self) -> int:
        """Connections that are open, waiting for a place, or ending."""

    @property
    def handshake_s(self) -> float:
        """Seconds in which the handshake of TLS must end."""

    @property
    def log(self) -> RefusalLog:
        """Log of refused clients."""

    def connection(self) -> "HttpConnection":
        """Return the protocol of a new connection."""


class HttpEntrance:
    """Accepts connections on the event loop.

    Servers of asyncio and uvloop know no reserve of descriptors, and log a traceback for each
    attempt to accept without one.
    """

    def __init__(
        self, listener: socket.socket, server: Entered, certificate: "Certificate | None" = None
    ) -> None:
        """Take over a listening socket.

        Args:
            listener: The socket.
            server: Server that has the connections.
            certificate: Certificate of TLS; None for plain text.
        """
        listener.settimeout(0)
        self._server, self._certificate = server, certificate
        self._open_max = 2 * server.connections_max + EXTRA
        full = error_response(503, "too many connections are open or ending; try again later")
        self._farewell = full.last_words if certificate is None else b""
        self._acceptor = Acceptor(listener, "HTTP", farewell=self._farewell)
        self._crowd = Shortage(f"{self._open_max} connections by HTTP are open, waiting or ending")
        self._loop = asyncio.get_running_loop()
        self._arrivals = Arrivals(self._log_failure, have_handshakes=certificate is not None)

    def open(self) -> None:
        """Begin to accept."""
        self._loop.add_reader(self._acceptor.fileno(), self._accept)

    async def close(self) -> None:
        """Stop accepting, and wait for what has been accepted."""
        self._crowd.end()
        if self._acceptor.fileno() >= 0:
            self._loop.remove_reader(self._acceptor.fileno())
            self._acceptor.close()
        await self._arrivals.end()

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            accepted = self._acceptor.admit()
            if accepted is None:
                break
            if self._is_full and not self._arrivals.make_room():
                self._refuse(accepted)
            else:
                self._crowd.end_if_calm()
                self._begin(accepted)
        if self._acceptor.is_stuck:
            self._loop.remove_reader(self._acceptor.fileno())
            self._loop.call_later(STUCK_S, self._open_again)

    @property
    def _is_full(self) -> bool:
        return self._server.connection_count + len(self._arrivals) >= self._open_max

    def _open_again(self) -> None:
        if self._acceptor.fileno() >= 0:
            self.open()

    def _begin(self, accepted: socket.socket) -> None:
        accepted.settimeout(0)
        secured: dict[str, Any] = {}
        if self._certificate is not None:
            secured["ssl"] = self._certificate.context()
            secured["ssl_handshake_timeout"] = self._server.handshake_s
        connect, connection = self._loop.connect_accepted_socket, self._server.connection()
        task = self._loop.create_task(connect(lambda: connection, accepted, **secured))
        self._arrivals.add(task, _peer(accepted), lambda: connection.is_made)

    def _log_failure(self, peer: str, error: BaseException) -> None:
        self._server.log.refused(f"http:{peer}:0", "a connection", str(error) or repr(error))

    def _refuse(self, accepted: socket.socket) -> None:
        self._crowd.refused()
        with accepted:
            try:
                accepted.send(self._farewell, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except OSError:
                return


def _peer(accepted: socket.socket) -> str:
    """Return the address of a client, which may be gone."""
    try:
        return str(accepted.getpeername()[0])
    except OSError:
        return "gone"
