"""Strings of any bytes as Python has them: bytes that are not UTF-8 are lone surrogates.

So every element of a string tensor is a `str`, equal to another where their bytes are, and
`encoded(decoded(raw)) == raw`. `os.fsdecode` does the same to names of files.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

ESCAPE = "surrogateescape"


def decoded(raw: bytes | bytearray | memoryview) -> str:
    """The element of a string tensor that stands for some bytes."""
    return str(raw, "utf-8", ESCAPE)


def encoded(text: str) -> bytes:
    """The bytes that an element of a string tensor stands for.

    Raises:
        UnicodeEncodeError: It has a surrogate that stands for no byte.
    """
    return text.encode("utf-8", ESCAPE)


def joined(one: str, other: str) -> str:
    """The element for the bytes of two in a row, whose seam may be within a letter."""
    both = one + other
    return both if both.isascii() else decoded(encoded(both))


def is_utf8(text: str) -> bool:
    """Whether the bytes of an element are UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def with_texts(array: NDArray[Any]) -> NDArray[Any]:
    """An array of strings, bytes, or both as an array of `str` objects.

    The array itself where it is one already.
    """
    if array.dtype != object:
        array = array.astype(object)
    flat = array.reshape(-1)
    if not any(isinstance(each, bytes) for each in flat):
        return array
    found = np.empty(flat.size, object)
    found[:] = [decoded(each) if isinstance(each, bytes) else each for each in flat]
    return found.reshape(array.shape)
