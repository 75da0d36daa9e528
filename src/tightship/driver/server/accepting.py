"""Acceptance of connections and files while the process has descriptors beyond a reserve."""

import errno
import logging
import os
import resource
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import monotonic

RESERVED_PART = 8
"""One in so many of the process's descriptors is reserved for runs, loads and refusals."""
CALM_S = 10.0
"""Seconds without a refusal after which a shortage is over."""

_LOG = logging.getLogger(__name__)


class Shortage:
    """Logs the first refusal of a shortage, and their count at its end."""

    def __init__(
        self, reason: str, result: str = "connections are refused, or idle ones ended"
    ) -> None:
        """Describe cause and result, as sentences without full stops."""
        self._reason, self._result = reason, result
        self._count = 0
        self._last_s = 0.0

    def refused(self) -> None:
        """Count a refusal."""
        self.end_if_calm()
        if not self._count:
            _LOG.warning("%s; %s.", self._reason, self._result)
        self._count += 1
        self._last_s = monotonic()

    def end_if_calm(self) -> None:
        """End the shortage if no client was refused for a while."""
        if self._count and monotonic() - self._last_s >= CALM_S:
            self.end()

    def end(self) -> None:
        """Log the count, if there is one."""
        if self._count:
            _LOG.warning("%s: %d were refused or ended.", self._reason, self._count)
        self._count = 0


class Acceptor:
    """Accepts the connections of a non-blocking socket.

    A client for which only reserved descriptors are left is disconnected: otherwise the socket
    would stay readable.

    Attributes:
        is_stuck: Whether a client waits for which no descriptor is left, even to disconnect it.
    """

    def __init__(
        self, listener: socket.socket, name: str, *, parts: int = 1, farewell: bytes = b""
    ) -> None:
        """Take over a listening socket.

        Args:
            listener: The socket.
            name: Name of the endpoint in the log.
            parts: Multiples of `RESERVED_PART` that are left to others.
            farewell: Bytes sent to a client before it is disconnected.

        Raises:
            OSError: No descriptor is left.
        """
        self._socket = listener
        self._parts, self._farewell = parts, farewell
        self._shortage = Shortage(f"Too few descriptors are left for connections by {name}")
        self.is_stuck = False
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._spare = os.dup(self._null)

    def fileno(self) -> int:
        """Return a descriptor that is readable when a client waits."""
        return self._socket.fileno()

    def admit(
        self, left_count: int = 0, make_room: Callable[[], bool] = lambda: False
    ) -> socket.socket | None:
        """Accept a waiting client, if there is one and a descriptor for it.

        Args:
            left_count: Descriptors that connections leave beside those in reserve.
            make_room: Called where too few are left; ends another connection, if one can be ended.
        """
        self.is_stuck = False
        if self._spare < 0:
            with suppress(OSError):
                self._spare = os.dup(self._null)
        try:
            accepted = self._socket.accept()[0]
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                return None
            if not make_room():
                self._turn_away()
                return None
            return self.admit(left_count)
        if not is_reserved(accepted.fileno() + left_count, self._parts):
            self._shortage.end_if_calm()
            return accepted
        self._shortage.refused()
        if make_room():
            return _moved(accepted)
        with accepted:
            self._part_from(accepted)
        return None

    def _part_from(self, client: socket.socket) -> None:
        with suppress(OSError):
            client.send(self._farewell, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def _turn_away(self) -> None:
        """Disconnect a client for which no descriptor is left.

        If another thread takes the descriptor that is freed for this, the socket stays readable
        until one is free again.
        """
        self._shortage.refused()
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        try:
            accepted = self._socket.accept()[0]
        except OSError:
            self.is_stuck = True
            return
        self._part_from(accepted)
        self._spare = os.dup2(self._null, accepted.detach(), inheritable=False)

    def close(self) -> None:
        """Stop accepting."""
        self._shortage.end()
        self._socket.close()
        os.close(self._null)
        if self._spare >= 0:
            os.close(self._spare)


class FileReserve:
    """Admits files beside calls while descriptors beyond the reserve are left."""

    def __init__(self, name: str, *, parts: int) -> None:
        """Leave `parts` times `RESERVED_PART` to others; `name` is the files' owner in the log."""
        self._parts = parts
        self._shortage = Shortage(
            f"Too few descriptors are left for files of {name}", "calls with files are refused"
        )

    def admits(self, files: Iterable[int], held_count: int) -> bool:
        """Whether received files may stay.

        A client must leave as many descriptors as it holds, so that it cannot take all of them.
        """
        if any(is_reserved(file + held_count, self._parts) for file in files):
            self._shortage.refused()
            return False
        self._shortage.end_if_calm()
        return True

    def close(self) -> None:
        """Log the count of refusals, if there is one."""
        self._shortage.end()


def _moved(connection: socket.socket) -> socket.socket:
    """Move a connection to the lowest free descriptor; keep its own if another thread took that."""
    try:
        lowest = os.dup(connection.fileno())
    except OSError:
        return connection
    with connection:
        return socket.socket(fileno=lowest)


def is_reserved(file: int, parts: int = 1) -> bool:
    """Whether a descriptor is among the last of this process, `parts` times `RESERVED_PART`.

    The kernel allocates the lowest free number, so the number shows how many are in use.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return file >= limit - parts * (limit // RESERVED_PART)
