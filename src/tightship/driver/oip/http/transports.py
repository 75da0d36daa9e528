"""Transport and socket of a connection, beyond what uvicorn asks of them."""

import asyncio
import socket
import struct
from contextlib import suppress
from fcntl import ioctl
from termios import FIONREAD

from uvicorn.protocols.http.flow_control import FlowControl


class Flow(FlowControl):
    """Flow of a connection, which is not read before it has a place or while it is choked."""

    is_held = False

    def resume_reading(self) -> None:
        """Read on, if that is allowed."""
        if not (self.is_held or self.write_paused):
            super().resume_reading()


def has_unread(transport: asyncio.Transport) -> bool:
    """Whether bytes have come that were not read."""
    (count,) = struct.unpack("i", ioctl(file_of(transport), FIONREAD, bytes(4)))
    return bool(count)


def end_now(transport: asyncio.Transport) -> None:
    """Close our side before anything else is sent, which loops do later.

    Otherwise the client of another connection could be answered first, and this one send a request
    that nothing reads.
    """
    side = socket.socket(fileno=file_of(transport))
    with suppress(OSError):
        side.shutdown(socket.SHUT_WR)
    side.detach()


def file_of(transport: asyncio.Transport) -> int:
    """Return the descriptor of a transport's socket."""
    found: int = transport.get_extra_info("socket").fileno()
    return found
