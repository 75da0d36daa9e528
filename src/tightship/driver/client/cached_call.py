"""Repeated calls: encoded once, replies decoded only if they differ."""

from tightship.driver.protocol.codec import encode
from tightship.driver.protocol.messages import Call
from tightship.driver.protocol.replies import Reply

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
