"""Connections of gRPC, accepted by its library: idle ones are closed if there are too many."""

import errno
import os
import socket
import stat
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tightship.driver.oip.grpc.slots import CallSlots
from tightship.driver.oip.limits import RECENT_NS, EndpointLimits
from tightship.driver.server.accepting import Shortage

PERIOD_S = 0.2
HANDSHAKE_S = 10
_TRAFFIC = struct.Struct("=44x I 4x I")
"""Fields of `tcp_info`: milliseconds since data was last sent and received."""

Options = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """Connection: descriptor, client's address and port, and how long it was silent."""

    file: int
    client: tuple[str, int]
    idle_ms: int


def room_for(limits: EndpointLimits) -> int:
    """Return the most connections, or calls, for the library: the limit, and some for new ones."""
    return limits.connections_max + limits.connections_max // 4 + 4


def options_for(limits: EndpointLimits) -> Options:
    """Return the library's options that limit connections."""
    return (
        ("grpc.max_allowed_incoming_connections", room_for(limits)),
        ("grpc.max_connection_idle_ms", int(limits.idle_s * 1000)),
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_S * 1000),
    )


class GrpcConnections:
    """Closes idle connections if more than the limit are open.

    The library has no list of its connections. They are found among the descriptors of the process,
    which are inspected only if there may be too many.
    """

    def __init__(self, limits: EndpointLimits, slots: CallSlots) -> None:
        """Keep the connections of calls in `slots`, and end late ones of these calls."""
        self._max = limits.connections_max
        self._slots = slots
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="tightship-grpc-connections")
        self._crowd = Shortage(f"More than {self._max} connections by gRPC were open")
        self._port = 0

    def start(self, port: int) -> None:
        """Begin to close idle connections to a port."""
        self._port = port
        self._thread.start()

    def stop(self) -> None:
        """Stop closing connections."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(PERIOD_S):
            self._slots.end_late()
            with suppress(OSError):  # no descriptor is left to inspect others
                if _lowest_free() > self._max:
                    self._make_room()
        self._crowd.end()

    def _make_room(self) -> None:
        found = _connections(self._port)
        if len(found) <= self._max:
            self._crowd.end_if_calm()
            return
        counts = Counter(each.client[0] for each in found)
        calling = {port_of(peer) for peer in self._slots.busy_peers()}
        idle = [each for each in found if each.idle_ms * 1_000_000 > RECENT_NS]
        idle = [each for each in idle if each.client[1] not in calling]
        idle.sort(key=lambda each: (-counts[each.client[0]], -each.idle_ms))
        for each in idle[: len(found) - self._max]:
            self._crowd.refused()
            _end(each, self._port)


def port_of(peer: str) -> int | None:
    """Return the port in the library's name of a client; None once the client is gone."""
    number = peer.rpartition(":")[2]
    return int(number) if number.isdigit() else None


def _lowest_free() -> int:
    """Return the lowest free descriptor, a lower bound of those in use."""
    file = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.close(file)
    return file


def _connections(port: int) -> list[_Found]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError), _borrowed(int(name)) as connection:
            client = _client_at(connection, port)
            if client is not None:
                info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TRAFFIC.size)
                found.append(_Found(int(name), client, min(_TRAFFIC.unpack(info))))
    return found


@contextmanager
def _borrowed(file: int) -> Iterator[socket.socket]:
    """Duplicate a socket, because its owner may close it meanwhile.

    Raises:
        OSError: It is not a socket. Other files are not duplicated, because closing the duplicate
            would release this process's locks on them.
    """
    if not stat.S_ISSOCK(os.fstat(file).st_mode):
        raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
    with socket.socket(fileno=os.dup(file)) as borrowed:
        yield borrowed


def _client_at(connection: socket.socket, port: int) -> tuple[str, int] | None:
    """Return the client's address and port of a connection at `port`; None for others.

    Raises:
        OSError: It is not connected.
    """
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    if connection.getsockname()[1] != port:
        return None
    host, client_port, *_ = connection.getpeername()
    return host, client_port


def _end(found: _Found, port: int) -> None:
    """Shut a connection down, unless its descriptor was reused; the library closes it."""
    with suppress(OSError), _borrowed(found.file) as connection:
        if _client_at(connection, port) == found.client:
            connection.shutdown(socket.SHUT_RDWR)
