"""Reads a JSON request as it arrives, with the numbers of its tensors as arrays from the start.

The text of a tensor takes many times its bytes, and its numbers as objects take more. Here a piece
of the text becomes an array before the next one is read, so that a request takes 8 bytes for each
number and the text beside them.
"""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.driver.oip.datatypes import NAMES
from tightship.driver.oip.infer_request import InferRequest, InputTensor, decode
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.tensors import (
    check_element_count,
    check_json_type,
    overflow_error,
    type_error,
)
from tightship.graph import DType

PIECE_BYTES = 64 << 10
"""Bytes of text that are read at once."""
KEY = b'"data"'
OPENING = re.compile(KEY + rb"\s*:\s*\[")
BLANKS = b" \t\r\n"
BRACKETS = re.compile(rb"[\[\]]")
MISPLACED = (
    re.compile(rb"\](?=\s*[^\s,\]])"),
    re.compile(rb"(?<=[^\s,\[])\["),
    re.compile(rb"(?<=[^\s,\[])\s+\["),
)
"""Brackets inside of a list that no comma separates from its elements."""
MARK = "\0tightship:"
"""Start of the string that stands for an array in the text, before its index. A client that sends
one names an array of its own request at most."""

Array = NDArray[np.generic]


class TextTooLargeError(ValueError):
    """The text besides numbers is larger than there is room for."""


class JsonArrays:
    """Request that arrives in parts."""

    def __init__(self, numbers_max: int, text_max: int) -> None:
        """Expect a request.

        Args:
            numbers_max: Most numbers that are kept; of further ones only the count is.
            text_max: Most bytes of text besides numbers.
        """
        self._numbers_max, self._text_max = numbers_max, text_max
        self._text = bytearray()
        self._scanned = 0
        self._lists: list[_Numbers] = []
        self._open: _Numbers | None = None

    def feed(self, part: bytes | memoryview) -> None:
        """Read a further part.

        Raises:
            OipError: A list of numbers is not valid.
            TextTooLargeError: The text besides numbers exceeds `text_max`.
        """
        for start in range(0, len(part), PIECE_BYTES):
            rest = bytes(part[start : start + PIECE_BYTES])
            while rest:
                rest = self._outside(rest) if self._open is None else self._inside(rest, self._open)
            held = len(self._text) + (0 if self._open is None else len(self._open.pending))
            if held > self._text_max:
                raise TextTooLargeError

    def request(self) -> InferRequest:
        """Return the request, once all parts have been read; may be called once.

        Raises:
            OipError: It is not valid.
        """
        if self._open is not None:
            raise _unparsed("the list of `data` does not end")
        lists = {f"{MARK}{index}": each for index, each in enumerate(self._lists)}
        self._lists = []
        found = decode(self._text, None)
        return replace(found, inputs=tuple(_filled(each, lists) for each in found.inputs))

    def _outside(self, part: bytes) -> bytes:
        """Keep text up to the next list of numbers, and return what follows its bracket."""
        self._text += part
        found = OPENING.search(self._text, self._scanned)
        if found is None:
            key = self._text.rfind(KEY, self._scanned)
            self._scanned = max(self._scanned, key if key >= 0 else len(self._text) - len(KEY))
            return b""
        rest = bytes(self._text[found.end() :])
        del self._text[found.end() :]
        self._open = _Numbers(self._numbers_max - sum(each.kept for each in self._lists))
        return rest

    def _inside(self, part: bytes, numbers: "_Numbers") -> bytes:
        """Take numbers, and return what follows their list, or all of a list of strings."""
        rest = numbers.feed(part)
        if numbers.is_text:
            self._open, self._scanned = None, len(self._text)
            return rest or b""
        if rest is None:
            return b""
        self._text += f'"{json.dumps(MARK)[1:-1]}{len(self._lists)}"]'.encode()
        self._scanned = len(self._text)
        self._lists.append(numbers)
        self._open = None
        return rest


class _Numbers:
    """Elements of one list, nested or not, in pieces.

    Attributes:
        pending: Text of an element that may go on in the next part.
        count: Number of elements.
        kept: Number of those that are in `pieces`.
        depth_max: Lists within lists.
        is_text: Whether it has strings, which stay text.
    """

    def __init__(self, most: int) -> None:
        self.pending = b""
        self.count = self.kept = 0
        self.depth_max = self._depth = 1
        self.is_text = False
        self.pieces: list[Array] = []
        self._most = most

    def feed(self, part: bytes) -> bytes | None:
        """Take a part, and return what follows the list; None if it goes on.

        If it turns out to be text, all of it is returned.
        """
        text, known = self.pending + part, len(self.pending)
        end = self._end(text, known)
        here = text if end is None else text[:end]
        if b'"' in here and not self.count:
            self.is_text = True
            return text
        if end is not None:
            if here.strip() or self.count:
                self._take(here)
            self.pending = b""
            return text[end + 1 :]
        comma = text.rfind(b",")
        if comma >= 0:
            self._take(text[:comma])
        pending = text[comma + 1 :].lstrip(BLANKS)
        shown = pending.rstrip(BLANKS)
        self.pending = shown if shown == pending else shown + b" "  # long gaps count as short ones
        return None

    def _end(self, text: bytes, known: int) -> int | None:
        """Return the index of the bracket that closes the list."""
        for found in BRACKETS.finditer(text, known):
            self._depth += 1 if found[0] == b"[" else -1
            self.depth_max = max(self.depth_max, self._depth)
            if not self._depth:
                return found.start()
        return None

    def _take(self, text: bytes) -> None:
        if b"[" in text or b"]" in text:
            if any(each.search(text) for each in MISPLACED):
                raise _unparsed("a bracket of `data` is misplaced")
            text = text.translate(None, b"[]")
        if not text.strip():
            raise _unparsed("an element of `data` is missing")
        try:
            values = json.loads(b"[" + text + b"]")
        except (ValueError, RecursionError) as error:
            raise _unparsed(str(error)) from None
        self.count += len(values)
        if self.kept + len(values) <= self._most:
            self.pieces.append(_packed(values))
            self.kept += len(values)


def _packed(values: list[Any]) -> Array:
    kinds = set(map(type, values))
    try:
        if kinds == {bool}:
            return np.array(values, np.bool_)
        if kinds == {int}:
            return np.array(values, np.uint64 if max(values) > np.iinfo(np.int64).max else np.int64)
        if kinds <= {int, float}:
            return np.array(values, np.float64)
    except OverflowError:
        raise _unparsed("an element of `data` is larger than any type holds") from None
    raise OipError(
        "Unable to parse 'data': attempt to access JSON elements of an input that are not all "
        "numbers, or all of one type"
    )


def _filled(tensor: InputTensor, lists: dict[str, _Numbers]) -> InputTensor:
    """Return an input with the bytes of its array, taken from the lists by the mark of it."""
    content = tensor.content
    if not (isinstance(content, list) and len(content) == 1 and isinstance(content[0], str)):
        return tensor
    numbers = lists.pop(content[0], None)
    if numbers is None:
        return tensor
    check_json_type(tensor.name, tensor.dtype)
    deepest = max(1, len(tensor.shape))
    if tensor.dtype is DType.STRING or numbers.depth_max > deepest:
        raise type_error(tensor.name, tensor.dtype)
    check_element_count(tensor.name, tensor.shape, numbers.count)
    if numbers.kept < numbers.count:
        raise OipError(f"input '{tensor.name}' has {numbers.count} elements, more than any model")
    return replace(tensor, content=_joined(tensor, numbers).view(np.uint8).data)


def _joined(tensor: InputTensor, numbers: _Numbers) -> Array:
    """Return the elements as the type of the tensor; frees the pieces."""
    found = np.empty(numbers.count, tensor.dtype.numpy)
    allowed = "b" if tensor.dtype is DType.BOOL else "iuf" if found.dtype.kind == "f" else "iu"
    at = 0
    while numbers.pieces:
        piece = numbers.pieces.pop(0)
        if piece.dtype.kind not in allowed:
            raise type_error(tensor.name, tensor.dtype)
        if allowed == "iu" and not _holds(found.dtype, piece):
            raise overflow_error(tensor.name, NAMES[tensor.dtype])
        with np.errstate(over="ignore"):
            found[at : at + len(piece)] = piece
        at += len(piece)
    return found


def _holds(dtype: np.dtype[Any], piece: Array) -> bool:
    known = np.iinfo(dtype)
    return known.min <= int(piece.min()) and int(piece.max()) <= known.max


def _unparsed(reason: str) -> OipError:
    return OipError(f"failed to parse the request JSON buffer: {reason}")
