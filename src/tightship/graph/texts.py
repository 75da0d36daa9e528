"""Strings of any bytes as `str`: bytes that are not UTF-8 become lone surrogates.

Every element of a string tensor is a `str`, equal to another if their bytes are, and
`encoded(decoded(raw)) == raw`. `os.fsdecode` does the same to file names.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

ESCAPE = "surrogateescape"


def decoded(raw: bytes | bytearray | memoryview) -> str:
    """Convert bytes to the element of a string tensor."""
    return str(raw, "utf-8", ESCAPE)


def encoded(text: str) -> bytes:
    """Convert an element of a string tensor to bytes.

    Raises:
        UnicodeEncodeError: It has a surrogate that stands for no byte.
    """
    return text.encode("utf-8", ESCAPE)


def joined(one: str, other: str) -> str:
    """Concatenate the bytes of two elements, whose seam may be within a character."""
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
    """Convert an array of strings, bytes, or both to an array of `str` objects.

    An array of `str` objects is returned unchanged.
    """
    if array.dtype != object:
        array = array.astype(object)
    flat = array.reshape(-1)
    if not any(isinstance(each, bytes) for each in flat):
        return array
    found = np.empty(flat.size, object)
    found[:] = [decoded(each) if isinstance(each, bytes) else each for each in flat]
    return found.reshape(array.shape)
