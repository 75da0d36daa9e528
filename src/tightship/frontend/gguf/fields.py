"""Values of a GGUF header, of which only numbers are read: texts and arrays stay in the file."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightship._core import gguf_texts
from tightship.frontend.gguf.cursor import U64, Cursor, decoded

NESTING_MAX = 4
"""Most arrays within one another."""


class Kind(IntEnum):
    """Type of a value, by its number in the file."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


NUMBERS = {
    Kind.UINT8: "u1", Kind.INT8: "i1", Kind.UINT16: "<u2", Kind.INT16: "<i2", Kind.UINT32: "<u4",
    Kind.INT32: "<i4", Kind.FLOAT32: "<f4", Kind.BOOL: "u1", Kind.UINT64: "<u8", Kind.INT64: "<i8",
    Kind.FLOAT64: "<f8",
}  # fmt: skip
"""Types of numbers, as NumPy names them."""
ARRAY_BYTES_MIN = 12
"""Bytes of an empty array: the type of its elements, and their count."""
KINDS = ", ".join(f"{kind.value} {kind.name.lower()}" for kind in Kind)


class Text(NamedTuple):
    """Text that stays in the file."""

    data: memoryview
    path: str
    key: str

    def read(self) -> str:
        """Return the text.

        Raises:
            FormatError: It is not UTF-8.
        """
        return decoded(self.data, f"`{self.key}`", self.path)


class Numbers(NamedTuple):
    """Array that stays in the file; `elements` is None unless they are numbers."""

    element: Kind
    length: int
    elements: NDArray[np.generic] | None


class Texts(NamedTuple):
    """Array of texts, each behind its length, that stay in the file."""

    data: memoryview
    path: str
    key: str
    length: int

    def read(self) -> list[str]:
        """Return the texts.

        Raises:
            FormatError: A text is not UTF-8.
        """
        texts = gguf_texts(self.data, self.length)
        if texts is not None:
            return texts
        data, size_at, place, found = bytes(self.data), U64.unpack_from, 0, []
        for _ in range(self.length):
            start = place + U64.size
            place = start + size_at(data, place)[0]
            found.append(data[start:place])
        what = f"a text of `{self.key}`"
        return [decoded(memoryview(each), what, self.path) for each in found]


Field = int | float | bool | Text | Numbers | Texts


def read_field(cursor: Cursor, key: str) -> Field:
    """Read the type and the value of a key.

    Raises:
        FormatError: The type is unknown, the value does not fit it, or the file ends before its
            end.
    """
    kind = _kind(cursor, f"the type of `{key}`")
    if kind is Kind.ARRAY:
        return _array(cursor, key, 1)
    if kind is Kind.STRING:
        size = cursor.u64(f"the length of `{key}`")
        start = cursor.skip(size, 1, f"`{key}`")
        return Text(cursor.data[start : start + size], cursor.path, key)
    numbers = _numbers(cursor, kind, 1, key)
    return numbers.item()  # type: ignore[no-any-return]


def _kind(cursor: Cursor, what: str) -> Kind:
    number = cursor.u32(what)
    try:
        return Kind(number)
    except ValueError:
        raise cursor.refusal(f"{what} is {number}; types are {KINDS}", is_cut=False) from None


def _numbers(cursor: Cursor, kind: Kind, count: int, key: str) -> NDArray[np.generic]:
    dtype = np.dtype(NUMBERS[kind])
    start = cursor.skip(count, dtype.itemsize, f"`{key}`")
    found: NDArray[np.generic] = np.frombuffer(cursor.data, dtype, count, start)
    if kind is not Kind.BOOL:
        return found
    if found.max(initial=0) > 1:
        raise cursor.refusal(
            f"`{key}` has a truth value of {found.max()}; it must be 0 or 1", is_cut=False
        )
    return found.view(np.bool_)


def _array(cursor: Cursor, key: str, depth: int) -> Numbers | Texts:
    if depth > NESTING_MAX:
        raise cursor.refusal(
            f"`{key}` has arrays {depth} deep; they may be {NESTING_MAX} deep", is_cut=False
        )
    element = _kind(cursor, f"the type of the elements of `{key}`")
    stated = cursor.u64(f"the count of `{key}`")
    count = cursor.bounded(stated, _least_bytes(element), stated, f"the count of `{key}`")
    if element in NUMBERS:
        return Numbers(element, count, _numbers(cursor, element, count, key))
    if element is Kind.STRING:
        start = cursor.skip_texts(count, f"`{key}`")
        return Texts(cursor.data[start : cursor.place], cursor.path, key, count)
    for _ in range(count):
        _array(cursor, key, depth + 1)
    return Numbers(element, count, None)


def _least_bytes(kind: Kind) -> int:
    if kind in NUMBERS:
        return np.dtype(NUMBERS[kind]).itemsize
    return U64.size if kind is Kind.STRING else ARRAY_BYTES_MIN
