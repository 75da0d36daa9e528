"""A call that is made again and again: encoded once, its answer read when it differs."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

from tightship.driver.protocol.codec import encode
from tightship.driver.protocol.messages import Call
from tightship.driver.protocol.replies import Reply

RECENT = 4
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


@dataclass(frozen=True, slots=True)
class Known:
    """A request whose arguments all stay where they are.

    Attributes:
        results: What the caller gets; the same arrays each time.
    """

    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    call: Repeated
    results: tuple[Any, ...]

    def is_of(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> bool:
        """Whether the same objects are named."""
        return (
            len(inputs) == len(self.inputs)
            and len(outputs) == len(self.outputs)
            and all(map(is_, inputs, self.inputs))
            and all(map(is_, outputs, self.outputs))
        )


class Recent:
    """The last few requests of a model that may come again."""

    def __init__(self) -> None:
        self._known: deque[Known] = deque(maxlen=RECENT)

    def find(self, inputs: Sequence[Any], outputs: Sequence[Any] | None) -> Known | None:
        """The request that names these objects."""
        if outputs is not None:
            for each in self._known:
                if each.is_of(inputs, outputs):
                    return each
        return None

    def add(self, known: Known) -> None:
        """Remember one instead of the oldest."""
        self._known.append(known)
