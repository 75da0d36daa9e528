"""Packets with files beside them, over a Unix socket that preserves message boundaries."""

import array
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tightship.driver.protocol.codec import FILES_MAX, MESSAGE_BYTES_MAX
from tightship.errors import FormatError

_FD_BYTES = array.array("i").itemsize


@dataclass(frozen=True, slots=True)
class Packet:
    """Received message; its owner closes the files.

    Attributes:
        files: Descriptors that are closed on exec.
    """

    data: bytes
    files: tuple[int, ...]


def close_all(files: Iterable[int]) -> None:
    """Close descriptors."""
    for file in files:
        os.close(file)


def receive(
    connection: socket.socket,
    files_max: int = FILES_MAX,
    discard: Callable[[Iterable[int]], None] = close_all,
    room: bytearray | None = None,
) -> Packet | None:
    """Return the next packet, or None if the peer is gone.

    Args:
        connection: Unix socket that preserves message boundaries.
        files_max: Most files that are accepted beside a packet.
        discard: Closes files that came with an invalid packet, or for which memory is short.
        room: Buffer of `MESSAGE_BYTES_MAX` to receive into; None to allocate one.

    Raises:
        FormatError: The packet is too long, or files were lost; those that came are closed.
        BlockingIOError: No packet is there and the socket does not block.
    """
    place = bytearray(MESSAGE_BYTES_MAX) if room is None else room
    try:
        size, control, flags, _ = connection.recvmsg_into(
            [place],
            socket.CMSG_SPACE(files_max * _FD_BYTES) if files_max else 0,
            socket.MSG_CMSG_CLOEXEC,
        )
    except ConnectionResetError:  # reported once, even before packets that came earlier
        return receive(connection, files_max, discard, place)
    except ConnectionError:
        return None
    files = _files(control)
    if flags & (socket.MSG_CTRUNC | socket.MSG_TRUNC):
        discard(files)
        lost = "files of it are lost" if flags & socket.MSG_CTRUNC else "its end is lost"
        raise FormatError(
            f"A message came and {lost}: it has at most {MESSAGE_BYTES_MAX} bytes and {FILES_MAX} "
            "files, and this process must be able to open them."
        )
    if not size:
        discard(files)
        return None
    try:
        return Packet(bytes(memoryview(place)[:size]), files)
    except MemoryError:
        discard(files)
        raise


def _files(control: Iterable[tuple[int, int, bytes]]) -> tuple[int, ...]:
    found = array.array("i")
    for level, kind, data in control:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.frombytes(data[: len(data) - len(data) % _FD_BYTES])
    return tuple(found)


def send(connection: socket.socket, data: bytes, files: Sequence[int] = ()) -> None:
    """Send a packet; its files stay open here.

    Raises:
        BlockingIOError: The socket does not block and its queue is full.
        OSError: The peer is gone.
    """
    if not files:
        connection.send(data, socket.MSG_NOSIGNAL)
        return
    control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
    connection.sendmsg([data], control, socket.MSG_NOSIGNAL)
