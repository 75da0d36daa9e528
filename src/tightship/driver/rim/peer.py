"""A client's connection as the driver has it, and the answers that it has not taken."""

import socket
from collections import deque

from tightship.driver.events import Event, Malformed, Received
from tightship.driver.protocol.channel import close_all, receive, send
from tightship.driver.protocol.codec import decode_call, number_of
from tightship.driver.rim.descriptor import describe
from tightship.driver.rim.trusted import Trusted
from tightship.errors import FormatError

UNSENT_MAX = 1024
"""Answers that a client may leave unread beyond what its socket holds."""


class Peer:
    """One connection; who calls its methods sees to it that nobody else does.

    Attributes:
        number: Of the connection; never used again.
        file: Descriptor of its socket.
    """

    def __init__(self, number: int, connection: socket.socket, trusted: Trusted) -> None:
        """Takes the socket over; `trusted` says of which files the driver needs no copy."""
        connection.settimeout(0)
        self.number = number
        self.file = connection.fileno()
        self._socket = connection
        self._trusted = trusted
        self._unsent: deque[tuple[bytes, tuple[int, ...]]] = deque()

    @property
    def is_behind(self) -> bool:
        """Whether answers wait to be sent."""
        return bool(self._unsent)

    def take(self) -> Event | None:
        """The next call; None if the client is gone.

        Raises:
            BlockingIOError: None has come.
        """
        try:
            packet = receive(self._socket)
        except FormatError as error:
            return Malformed(self.number, 0, str(error))
        if packet is None:
            return None
        files = tuple([describe(file, self._trusted) for file in packet.files])
        try:
            frame = decode_call(packet.data)
        except FormatError as error:
            return Malformed(self.number, number_of(packet.data), str(error), files)
        if frame.file_count != len(files):
            message = f"{len(files)} files came beside a message of {frame.file_count}."
            return Malformed(self.number, frame.number, message, files)
        return Received(self.number, frame.number, frame.message, files)

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
