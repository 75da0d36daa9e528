"""A call that is made again and again: encoded once, its answer read when it differs."""

from tightship.driver.protocol.codec import encode
from tightship.driver.protocol.messages import Call
from tightship.driver.protocol.replies import Reply

NUMBER = slice(8, 16)
"""Where a message has the number of its call."""


class Repeated:
    """A call and its latest answer, without their numbers."""

    __slots__ = ("_answer", "_call", "_reply")

    def __init__(self, call: Call) -> None:
        """Encode it.

        Raises:
            FormatError: It is too large for a message.
        """
        data = encode(call, 0)
        self._call = data[: NUMBER.start], data[NUMBER.stop :]
        self._answer = b"", b""
        self._reply: Reply | None = None

    @property
    def was_answered(self) -> bool:
        """Whether it comes again."""
        return self._reply is not None

    def message(self, number: bytes) -> bytes:
        """It as the call of a number."""
        before, behind = self._call
        return before + number + behind

    def known(self, number: bytes, answer: bytes) -> Reply | None:
        """The latest reply if it has come again as answer to a number."""
        before, behind = self._answer
        return self._reply if answer == before + number + behind else None

    def note(self, answer: bytes, reply: Reply) -> None:
        """What has been answered."""
        self._answer = answer[: NUMBER.start], answer[NUMBER.stop :]
        self._reply = reply
