"""Connection of a client, with the replies that it has not read."""

import select
import socket
from collections import deque
from collections.abc import Callable, Iterable

from tightship.driver.protocol.channel import Packet, close_all, receive, send
from tightship.driver.protocol.codec import decode_call, number_of
from tightship.driver.protocol.replies import Failed
from tightship.driver.service.events import Event, Malformed, Received
from tightship.driver.types.attachment import Attachment
from tightship.driver.types.status import ErrorStatus
from tightship.errors import FormatError

UNANSWERED = "A file beside the call does not answer: its file system is slow, or gone."
NO_DESCRIPTORS = (
    "The driver has too few descriptors left for files beside calls. Unregister pools first, or "
    "start the driver with a higher limit of open files."
)
TOO_LONG = "The driver has too little memory left to read the call."
IDLE = Failed(
    ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT,
    "The connection held nothing and was ended to make room for another client. Connect again.",
)
UNSENT_MAX = 1024
"""Replies that a client may leave unread beyond what its socket holds."""


class Peer:
    """Connection of a client; callers serialize calls of its methods.

    Attributes:
        number: Number of the connection, never reused.
        user: User of its process.
        file: Descriptor of its socket.
        is_held: Whether a call is being inspected, before which no other is taken.
    """

    def __init__(self, number: int, connection: socket.socket, user: int = 0) -> None:
        """Take over the socket."""
        connection.settimeout(0)
        self.number, self.user = number, user
        self.file = connection.fileno()
        self._socket = connection
        self.is_held = False
        self._unsent: deque[tuple[bytes, tuple[int, ...]]] = deque()

    @property
    def is_behind(self) -> bool:
        """Whether replies wait to be sent."""
        return bool(self._unsent)

    @property
    def wanted(self) -> int:
        """Events of its socket to wait for."""
        calls = 0 if self.is_held else select.EPOLLIN
        return calls | (select.EPOLLOUT if self.is_behind else 0)

    @property
    def is_silent(self) -> bool:
        """Whether no call of it has come that is not answered."""
        if self.is_held:
            return False
        try:
            self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False  # a client that is gone is heard in its turn

    def take(
        self, discard: Callable[[Iterable[int]], None], *, files_max: int, room: bytearray
    ) -> Packet | None:
        """Return the next packet; None if the client is gone or memory is short.

        Arguments as for `receive`.

        Raises:
            BlockingIOError: No packet is there.
            FormatError: As from `receive`.
        """
        try:
            return receive(self._socket, files_max, discard, room)
        except MemoryError:  # this client is disconnected; others are still served
            return None

    def event(self, packet: Packet, files: tuple[Attachment, ...] | None) -> Event:
        """Return the event of a packet; `files` are None if they do not answer."""
        number = number_of(packet.data)
        if files is None:
            return Malformed(self.number, number, UNANSWERED, status=ErrorStatus.GENERAL_FAILURE)
        try:
            frame = decode_call(packet.data)
        except FormatError as error:
            return Malformed(self.number, number, str(error), files)
        except MemoryError:
            short = ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT
            return Malformed(self.number, number, TOO_LONG, files, status=short)
        if frame.file_count != len(files):
            message = f"A message of {frame.file_count} files came with {len(files)}."
            return Malformed(self.number, number, message, files)
        return Received(self.number, frame.number, frame.message, files)

    def without_files(self, packet: Packet) -> Event:
        """Return the event of a packet whose files were closed for lack of descriptors."""
        short = ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT
        return Malformed(self.number, number_of(packet.data), NO_DESCRIPTORS, status=short)

    def answer(self, data: bytes, files: tuple[int, ...] = ()) -> None:
        """Send a reply after those that wait, and close its files."""
        self._unsent.append((data, files))
        self.flush()

    def flush(self) -> None:
        """Send what the client accepts; one that leaves too much unread is disconnected."""
        while self._unsent:
            data, files = self._unsent[0]
            try:
                send(self._socket, data, files)
            except BlockingIOError:
                break
            except OSError:
                self._socket.shutdown(socket.SHUT_RDWR)
                break
            self._unsent.popleft()
            close_all(files)
        if len(self._unsent) > UNSENT_MAX:
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
        for _, files in self._unsent:
            close_all(files)
