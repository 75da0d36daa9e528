"""A client's connection as the driver has it, and the answers that it has not taken."""

import select
import socket
from collections import deque
from collections.abc import Callable, Iterable

from tightship.driver.protocol.channel import Packet, close_all, receive, send
from tightship.driver.protocol.codec import decode_call, number_of
from tightship.driver.service.events import Event, Malformed, Received
from tightship.driver.types.attachment import Attachment
from tightship.driver.types.status import ErrorStatus
from tightship.errors import FormatError

UNANSWERED = "A file beside the call does not answer: its file system is slow, or gone."
NO_DESCRIPTORS = (
    "The driver has too few descriptors left for files beside calls. Unregister pools first, or "
    "start the driver with a higher limit of open files."
)
UNSENT_MAX = 1024
"""Answers that a client may leave unread beyond what its socket holds."""


class Peer:
    """One connection; who calls its methods sees to it that nobody else does.

    Attributes:
        number: Of the connection; never used again.
        user: Whose process it is.
        file: Descriptor of its socket.
        is_held: Whether a call of it is looked at, before which no other is taken.
    """

    def __init__(self, number: int, connection: socket.socket, user: int = 0) -> None:
        """Takes the socket over."""
        connection.settimeout(0)
        self.number, self.user = number, user
        self.file = connection.fileno()
        self._socket = connection
        self.is_held = False
        self._unsent: deque[tuple[bytes, tuple[int, ...]]] = deque()

    @property
    def is_behind(self) -> bool:
        """Whether answers wait to be sent."""
        return bool(self._unsent)

    @property
    def wanted(self) -> int:
        """The events of its socket that somebody is to look at."""
        calls = 0 if self.is_held else select.EPOLLIN
        return calls | (select.EPOLLOUT if self.is_behind else 0)

    def take(
        self, discard: Callable[[Iterable[int]], None], *, files_max: int, room: bytearray
    ) -> Packet | None:
        """The next bytes and files; None if the client is gone, or there is no memory to hear it.

        Arguments as for `receive`.

        Raises:
            BlockingIOError: None has come.
            FormatError: As `receive`.
        """
        try:
            return receive(self._socket, files_max, discard, room)
        except MemoryError:  # other clients are served on; this one knows where it is hung up on
            return None

    def event(self, packet: Packet, files: tuple[Attachment, ...] | None) -> Event:
        """What has come, with what is known of its files; None if they do not answer."""
        number = number_of(packet.data)
        if files is None:
            return Malformed(self.number, number, UNANSWERED, status=ErrorStatus.GENERAL_FAILURE)
        try:
            frame = decode_call(packet.data)
        except FormatError as error:
            return Malformed(self.number, number, str(error), files)
        if frame.file_count != len(files):
            message = f"{len(files)} files came beside a message of {frame.file_count}."
            return Malformed(self.number, number, message, files)
        return Received(self.number, frame.number, frame.message, files)

    def without_files(self, packet: Packet) -> Event:
        """Make the event of a packet whose files were closed for lack of descriptors."""
        short = ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT
        return Malformed(self.number, number_of(packet.data), NO_DESCRIPTORS, status=short)

    def answer(self, data: bytes, files: tuple[int, ...] = ()) -> None:
        """Send an answer, and close its files, behind those that wait."""
        self._unsent.append((data, files))
        self.flush()

    def flush(self) -> None:
        """Send what the client takes; one that reads nothing for long is shut out."""
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
        """Hang up."""
        self._socket.close()
        for _, files in self._unsent:
            close_all(files)
