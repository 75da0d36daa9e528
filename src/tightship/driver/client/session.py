"""Connection of a client: calls, and repeated ones, which may go through a ring."""

import os
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Self, TypeVar

from tightship._core import RingCaller
from tightship.driver.memory.descriptor import new_segment
from tightship.driver.protocol.channel import Packet, close_all, receive, send
from tightship.driver.protocol.codec import MESSAGE_BYTES_MAX, decode_reply, encode, number_of
from tightship.driver.protocol.messages import RING_BYTES, Call, Capabilities, OpenRing
from tightship.driver.protocol.replies import Done, DriverCapabilities, Failed, Reply
from tightship.driver.types.socket_path import socket_path
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError, FormatError


def open_ring(offer: Callable[[OpenRing, Sequence[int]], object]) -> RingCaller | None:
    """Open a ring with the driver; None if it refuses or memory is short.

    Args:
        offer: Makes a call with a file.
    """
    try:
        file = new_segment(RING_BYTES)
    except OSError:
        return None
    try:
        ring = RingCaller(file)
        offer(OpenRing(0), (file,))
    except (DriverError, RuntimeError):
        return None
    finally:
        os.close(file)
    return ring


NUMBER = slice(8, 16)
"""Position of the call's number in a message."""


class CachedCall:
    """Call and its latest reply, encoded without their numbers."""

    __slots__ = ("_answer", "_call", "_reply")

    def __init__(self, call: Call) -> None:
        """Encode a call.

        Raises:
            FormatError: It is too large for a message.
        """
        data = encode(call, 0)
        self._call = data[: NUMBER.start], data[NUMBER.stop :]
        self._answer = b"", b""
        self._reply: Reply | None = None

    @property
    def was_answered(self) -> bool:
        """Whether it was answered before."""
        return self._reply is not None

    def message(self, number: bytes) -> bytes:
        """Return the message with this number."""
        before, behind = self._call
        return before + number + behind

    def known(self, number: bytes, answer: bytes) -> Reply | None:
        """Return the latest reply if `answer` equals it; else None."""
        before, behind = self._answer
        return self._reply if answer == before + number + behind else None

    def note(self, answer: bytes, reply: Reply) -> None:
        """Remember a reply."""
        self._answer = answer[: NUMBER.start], answer[NUMBER.stop :]
        self._reply = reply


R = TypeVar("R", bound=Reply)
ELSEWHERE = RingCaller.ELSEWHERE


class Session:
    """Connection that any thread may use, for one call at a time.

    A thread interrupted while waiting leaves a reply behind, which the next call skips.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        """Connect to the driver at a path; None for the default.

        Raises:
            DriverError: DEVICE_UNAVAILABLE: no driver listens there.
        """
        where = os.fspath(socket_path() if path is None else path)
        self._lock = threading.RLock()
        self._number = 0
        self._room = bytearray(MESSAGE_BYTES_MAX)
        self._ring: RingCaller | None = None
        self._is_ring_offered = False
        self._features: tuple[str, ...] | None = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._socket.connect(where)
        except OSError as error:
            self._socket.close()
            raise DriverError(
                f"No driver can be reached at `{where}` ({error.strerror or error}); start one "
                "with `tightship serve`.",
                status=ErrorStatus.DEVICE_UNAVAILABLE,
            ) from None

    def exchange(self, call: Call, files: Sequence[int] = ()) -> tuple[Reply, tuple[int, ...]]:
        """Make a call; return its reply and the files beside it, which the caller closes.

        Raises:
            DriverError: With the status of a failure; DEVICE_UNAVAILABLE: the driver is gone.
            FormatError: The call is too large for a message.
        """
        with self._lock:
            self._number += 1
            data = encode(call, self._number, len(files))
            if self._ring is not None:
                self._ring.dismiss()
            try:
                with suppress(ConnectionError):  # the reason for a disconnection may be readable
                    send(self._socket, data, files)
                packet = receive(self._socket, room=self._room)
                while packet is not None and _is_late(packet.data, self._number):
                    close_all(packet.files)
                    packet = receive(self._socket, room=self._room)
            except OSError:
                packet = None
            if packet is None:
                raise _gone()
            number = self._number
        reply = _reply(packet, number)
        if isinstance(reply, Failed):
            close_all(packet.files)
            raise DriverError(reply.message, status=reply.status)
        return reply, packet.files

    def repeat(self, call: CachedCall) -> Reply:
        """Make a call that involves no files.

        Once one is repeated, calls go through a ring while the driver polls it.

        Raises:
            DriverError: As from `exchange`.
        """
        with self._lock:
            if call.was_answered and not self._is_ring_offered:
                self._offer_ring()
            self._number += 1
            number = self._number.to_bytes(8, "little")
            try:
                answer = self._answer(call.message(number))
            except OSError:
                answer = b""
        if not answer:
            raise _gone()
        reply = call.known(number, answer)
        if reply is None:
            reply = _reply(Packet(answer, ()), int.from_bytes(number, "little"))
            if isinstance(reply, Failed):
                raise DriverError(reply.message, status=reply.status)
            call.note(answer, reply)
        return reply

    def _answer(self, message: bytes) -> bytes:
        answer = None if self._ring is None else self._ring.call(message)
        if answer == b"":
            answer = self._socket.recv(MESSAGE_BYTES_MAX)
            while answer != ELSEWHERE and _is_late(answer, self._number):
                answer = self._socket.recv(MESSAGE_BYTES_MAX)
        if answer is None or answer == ELSEWHERE:
            send(self._socket, message)
            answer = self._socket.recv(MESSAGE_BYTES_MAX)
            while answer[NUMBER] != message[NUMBER] and _is_late(answer, self._number):
                answer = self._socket.recv(MESSAGE_BYTES_MAX)
        return answer

    def _offer_ring(self) -> None:
        self._is_ring_offered = True
        if "call_ring" in self.features():
            self._ring = open_ring(partial(self.expect, Done))

    def features(self) -> tuple[str, ...]:
        """Return the optional features of the driver, queried once.

        Raises:
            DriverError: As from `exchange`.
        """
        if self._features is None:
            self._features = self.expect(DriverCapabilities, Capabilities()).features
        return self._features

    def expect(self, kind: type[R], call: Call, files: Sequence[int] = ()) -> R:
        """Make a call whose reply is of one kind and without files.

        Raises:
            DriverError: As from `exchange`.
        """
        reply, came = self.exchange(call, files)
        close_all(came)
        assert isinstance(reply, kind), reply
        return reply

    def forget(self, call: Call) -> None:
        """Make a call that releases something; errors are ignored."""
        with suppress(DriverError):
            self.exchange(call)

    def close(self) -> None:
        """Disconnect. Harmless when repeated."""
        self._socket.close()


def _is_late(answer: bytes, number: int) -> bool:
    return answer == ELSEWHERE or 0 < number_of(answer) < number


def _reply(packet: Packet, number: int) -> Reply:
    """Decode the reply to a call; number 0 marks a message that answers no call."""
    try:
        frame = decode_reply(packet.data)
    except FormatError:
        close_all(packet.files)
        raise
    if frame.number not in {number, 0} or frame.file_count != len(packet.files):
        close_all(packet.files)
        raise FormatError(
            f"Call {number} got a reply to call {frame.number} with {len(packet.files)} files."
        )
    return frame.message


def _gone() -> DriverError:
    return DriverError(
        "The driver is gone, or the connection is closed.", status=ErrorStatus.DEVICE_UNAVAILABLE
    )


class Released:
    """Thing in the driver that is released once."""

    def __init__(self, session: Session, release: Call) -> None:
        self._session = session
        self._release: Call | None = release

    def close(self) -> None:
        """Release it. Harmless when repeated."""
        if self._release is not None:
            self._session.forget(self._release)
            self._release = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
