"""Reads tables of a flatbuffer field by field, checking every offset."""

import struct
from dataclasses import dataclass

from tightship.errors import FormatError


@dataclass(frozen=True, slots=True)
class Bytes:
    """The bytes of a file and its name for messages."""

    name: str
    data: bytes

    def number(self, kind: str, position: int) -> int:
        """Read a little-endian number of a `struct` kind.

        Raises:
            FormatError: The number would leave the file.
        """
        size = struct.calcsize(f"<{kind}")
        if not 0 <= position <= len(self.data) - size:
            raise FormatError(
                f"`{self.name}` has {len(self.data)} bytes, but a field of {size} lies at byte "
                f"{position}: the file is cut or damaged."
            )
        return int(struct.unpack_from(f"<{kind}", self.data, position)[0])

    def follow(self, position: int) -> int:
        """Return the position that the offset at `position` points to."""
        return position + self.number("I", position)


@dataclass(frozen=True, slots=True)
class Table:
    """A table at a position; its fields are numbered as in the schema."""

    file: Bytes
    position: int

    def at(self, index: int) -> int | None:
        """Return the position of an inline field; None if the table leaves it at its default."""
        vtable = self.position - self.file.number("i", self.position)
        if 4 + 2 * index + 2 > self.file.number("H", vtable):
            return None
        offset = self.file.number("H", vtable + 4 + 2 * index)
        return self.position + offset if offset else None

    def number(self, index: int, kind: str = "I", default: int = 0) -> int:
        """Read a scalar field."""
        at = self.at(index)
        return default if at is None else self.file.number(kind, at)

    def vector(self, index: int, size: int) -> tuple[int, int]:
        """Return position and count of a vector of elements of `size` bytes; (0, 0) if absent.

        Args:
            index: Index of the field in the schema.
            size: Bytes of an element.

        Raises:
            FormatError: The vector would leave the file.
        """
        at = self.at(index)
        if at is None:
            return 0, 0
        start = self.file.follow(at)
        count = self.file.number("I", start)
        if start + 4 + count * size > len(self.file.data):
            raise FormatError(
                f"`{self.file.name}` has a vector of {count} elements at byte {start}, which "
                "leaves the file: it is cut or damaged."
            )
        return start + 4, count

    def integers(self, index: int) -> tuple[int, ...]:
        """Read a vector of int32."""
        start, count = self.vector(index, 4)
        return struct.unpack_from(f"<{count}i", self.file.data, start)

    def tables(self, index: int) -> list["Table"]:
        """Read a vector of tables."""
        start, count = self.vector(index, 4)
        return [Table(self.file, self.file.follow(start + 4 * i)) for i in range(count)]

    def text(self, index: int) -> str:
        """Read a string, with bytes that are not UTF-8 replaced; empty if there is none."""
        start, count = self.vector(index, 1)
        return self.file.data[start : start + count].decode("utf-8", "replace")
