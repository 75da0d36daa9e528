"""Connections and files that are taken while descriptors last, of which some are in reserve."""

import errno
import logging
import os
import resource
import socket
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic

RESERVED_PART = 8
"""Of this process's descriptors, one in so many is kept from connections: runs, loads and the
answers to refused clients need some."""
CALM_S = 10.0
"""A shortage is over once no client was refused for so long."""

_LOG = logging.getLogger(__name__)


class Shortage:
    """Logs refusals for want of something: when they begin, and their count after the last."""

    def __init__(
        self, reason: str, result: str = "connections are refused, or idle ones ended"
    ) -> None:
        """Log why, and what follows; sentences without their ends."""
        self._reason, self._result = reason, result
        self._count = 0
        self._last_s = 0.0

    def refused(self) -> None:
        """One more was refused."""
        self.end_if_calm()
        if not self._count:
            _LOG.warning("%s; %s.", self._reason, self._result)
        self._count += 1
        self._last_s = monotonic()

    def end_if_calm(self) -> None:
        """Log the count if none was refused for a while."""
        if self._count and monotonic() - self._last_s >= CALM_S:
            self.end()

    def end(self) -> None:
        """Log the count, if there is one."""
        if self._count:
            _LOG.warning("%s: %d were refused or ended.", self._reason, self._count)
        self._count = 0


class Acceptor:
    """Accepts the connections of a listening socket that does not block.

    A client for whom no descriptor is left, or only one in reserve, is hung up on: it would be
    ready to be accepted for ever.

    Attributes:
        is_stuck: Whether a client waits for whom no descriptor is left, not even to hang up.
    """

    def __init__(
        self, listener: socket.socket, name: str, *, parts: int = 1, farewell: bytes = b""
    ) -> None:
        """Accept from a socket, which is this object's from now on.

        Args:
            listener: The socket.
            name: Of the endpoint, for the log.
            parts: How many times `RESERVED_PART` it leaves to others.
            farewell: What a client reads that is hung up on.

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
        """Readable when a client comes."""
        return self._socket.fileno()

    def admit(self, left_count: int = 0) -> socket.socket | None:
        """A client that has come, if one has and there is a descriptor for it.

        Connections leave so many descriptors beside those in reserve.
        """
        self.is_stuck = False
        if self._spare < 0:
            with suppress(OSError):
                self._spare = os.dup(self._null)
        try:
            accepted = self._socket.accept()[0]
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._turn_away()
            return None
        if not is_reserved(accepted.fileno() + left_count, self._parts):
            self._shortage.end_if_calm()
            return accepted
        self._shortage.refused()
        with accepted:
            self._part_from(accepted)
        return None

    def _part_from(self, client: socket.socket) -> None:
        with suppress(OSError):
            client.send(self._farewell, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def _turn_away(self) -> None:
        """Hang up on a client for which no descriptor is left.

        Another thread may take the descriptor that is free in between: then it stays ready, until
        one is free again.
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
        """Accept no more."""
        self._shortage.end()
        self._socket.close()
        os.close(self._null)
        if self._spare >= 0:
            os.close(self._spare)


class FileReserve:
    """Takes the files that come beside clients' calls, unless they take descriptors in reserve."""

    def __init__(self, name: str, *, parts: int) -> None:
        """Leave `parts` times `RESERVED_PART` to others; `name` is whose files, for the log."""
        self._parts = parts
        self._shortage = Shortage(
            f"Too few descriptors are left for files of {name}", "calls with files are refused"
        )

    def admits(self, files: Iterable[int], held_count: int) -> bool:
        """Whether files that have come may stay.

        So that one client leaves some to others, it has to leave as many as it holds.
        """
        if any(is_reserved(file + held_count, self._parts) for file in files):
            self._shortage.refused()
            return False
        self._shortage.end_if_calm()
        return True

    def close(self) -> None:
        """Log the count of refusals, if there is one."""
        self._shortage.end()


def is_reserved(file: int, parts: int = 1) -> bool:
    """Whether a descriptor is one of the last of this process, `parts` times `RESERVED_PART`.

    The system gives the lowest that is free, so its number says how many are in use.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return file >= limit - parts * (limit // RESERVED_PART)
