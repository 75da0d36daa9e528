"""Messages with files beside them, over a Unix socket that keeps their borders."""

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
    """A message as it came; who has it closes its files.

    Attributes:
        files: Descriptors, closed by the system when another program takes this process over.
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
    """The next packet, or None if the peer is gone.

    Args:
        connection: A Unix socket that keeps borders.
        files_max: More files are lost.
        discard: Closes the files of a packet that is none, or that there is no memory for.
        room: Where a packet comes first, of `MESSAGE_BYTES_MAX`; by default one of its own.

    Raises:
        FormatError: It is longer than a message, or files of it are lost; those that came are
            closed.
        BlockingIOError: None has come, and the socket does not wait.
    """
    place = bytearray(MESSAGE_BYTES_MAX) if room is None else room
    try:
        size, control, flags, _ = connection.recvmsg_into(
            [place],
            socket.CMSG_SPACE(files_max * _FD_BYTES) if files_max else 0,
            socket.MSG_CMSG_CLOEXEC,
        )
    except ConnectionResetError:  # the kernel says so once, before what came before it
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
        OSError: The peer is gone; BlockingIOError: it takes no more now.
    """
    if not files:
        connection.send(data, socket.MSG_NOSIGNAL)
        return
    control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
    connection.sendmsg([data], control, socket.MSG_NOSIGNAL)
