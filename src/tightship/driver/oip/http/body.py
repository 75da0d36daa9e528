"""Body of a request, put where its tensors can be used in place."""

from collections.abc import Mapping

import numpy as np

from tightship.driver.oip.http.message import HEADER_LENGTH

ALIGNMENT_BYTES = 64
"""Alignment of the raw part behind the JSON header: that of every element type."""

SMALL_BYTES = 64 << 10
"""Size up to which a body is cheaper to copy than to place."""


Body = bytes | bytearray | memoryview


class TooLargeError(Exception):
    """A body exceeds its limit."""


class BodyBuffer:
    """Collects the parts of a body, each copied once.

    A large body of known length gets its memory at once, untouched until parts come, and so that
    the bytes behind its JSON header are aligned: a model reads them where they lie.
    """

    def __init__(self, headers: Mapping[str, str], bytes_max: int) -> None:
        """Expect a body.

        Args:
            headers: Headers of the request, by names in lower case, that `check_length` accepts.
            bytes_max: Most bytes of the body.
        """
        self._bytes_max = bytes_max
        self._size_bytes = 0
        self._growing = bytearray()
        self._whole: memoryview | None = None
        said = int(headers.get("content-length", "0"))
        if said > SMALL_BYTES:
            self._whole = _aligned(said, headers.get(HEADER_LENGTH, ""))

    def add(self, part: bytes) -> None:
        """Append a part.

        Raises:
            TooLargeError: The body exceeds its limit, or the length in its headers.
        """
        start, self._size_bytes = self._size_bytes, self._size_bytes + len(part)
        most = self._bytes_max if self._whole is None else len(self._whole)
        if self._size_bytes > most:
            raise TooLargeError
        if self._whole is None:
            self._growing += part
        else:
            self._whole[start : self._size_bytes] = part

    def body(self) -> Body:
        """Return what has come."""
        return self._growing if self._whole is None else self._whole[: self._size_bytes]


def check_length(headers: Mapping[str, str], bytes_max: int) -> None:
    """Check the length of a body, if the headers say it.

    Raises:
        TooLargeError: It exceeds the limit, or is not a number.
    """
    said = headers.get("content-length", "0")
    if not (said.isascii() and said.isdigit() and len(said) < 20 and int(said) <= bytes_max):
        raise TooLargeError


def _aligned(size_bytes: int, header_length: str) -> memoryview:
    """Return memory whose bytes behind a header of so many bytes are aligned."""
    is_number = header_length.isascii() and header_length.isdigit() and len(header_length) < 20
    raw_at = int(header_length) if is_number else 0
    memory = np.empty(size_bytes + ALIGNMENT_BYTES, np.uint8)
    start = -(memory.ctypes.data + raw_at) % ALIGNMENT_BYTES
    return memory[start : start + size_bytes].data
