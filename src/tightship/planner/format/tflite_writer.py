"""Rewrites a TensorFlow Lite model with other metadata by putting new tables before the old file.

Offsets in a flatbuffer point forward only, so a new root must come first to refer to the old
tables. The old root remains in the file, unused.
"""

import struct

from tightship.errors import FormatError
from tightship.planner.format.flatbuffer import Table

FIELDS = 8
"""Number of known fields of a model; each takes four bytes inline."""

VERSION, BUFFERS, METADATA = 0, 4, 6
BUFFER_DATA, BUFFER_OFFSET = 0, 1
METADATA_NAME, METADATA_BUFFER = 0, 1
SHIFT = 16
"""The old content moves by a multiple of this many bytes, so that its alignments hold."""


def with_metadata(model: Table, name: str, payload: bytes) -> bytes:
    """Return the model's file with `payload` as its only metadata named `name`.

    A payload as long as the present one replaces it in place, and the rest of the file stays as it
    is.

    Raises:
        FormatError: The model has fields that are newer than this writer, or data outside the
            flatbuffer, which cannot be moved.
    """
    buffers = model.tables(BUFFERS)
    entries = model.tables(METADATA)
    for entry in entries:
        number = entry.number(METADATA_BUFFER)
        if entry.text(METADATA_NAME) == name and number < len(buffers):
            start, size = buffers[number].vector(BUFFER_DATA, 1)
            if size == len(payload):
                return model.file.data[:start] + payload + model.file.data[start + size :]
    if any(model.at(index) is not None for index in range(FIELDS, FIELDS + 64)):
        raise FormatError(f"`{model.file.name}` has fields that this writer does not know.")
    if any(buffer.number(BUFFER_OFFSET, "Q") > 1 for buffer in buffers):
        raise FormatError(f"`{model.file.name}` has data outside its flatbuffer, at fixed offsets.")
    kept = [entry.position for entry in entries if entry.text(METADATA_NAME) != name]
    return _front(model, [b.position for b in buffers], kept, name, payload) + model.file.data


class _Front:
    """Bytes being written; references are filled in once their targets have a position."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._references: list[tuple[int, int]] = []

    def align(self, size: int, after: int = 0) -> None:
        """Pad so that the byte at `after` bytes from here lies at a multiple of `size`."""
        self.data += bytes(-(len(self.data) + after) % size)

    def number(self, kind: str, value: int) -> int:
        """Append a number; return its position."""
        self.data += struct.pack(f"<{kind}", value)
        return len(self.data) - struct.calcsize(f"<{kind}")

    def point(self, at: int, target: int) -> None:
        """Set the offset at `at` so that it points to `target`."""
        struct.pack_into("<I", self.data, at, target - at)

    def table(self, fields: dict[int, int], count: int) -> dict[int, int]:
        """Append a vtable and a table of four bytes a field; return the position of each field.

        The table itself begins four bytes before the first field.
        """
        self.align(4, 2 * (2 + count))  # the table follows the vtable and has to be aligned
        vtable = len(self.data)
        self.data += struct.pack("<HH", 4 + 2 * count, 4 + 4 * len(fields))
        order = {index: 4 + 4 * place for place, index in enumerate(fields)}
        for index in range(count):
            self.number("H", order.get(index, 0))
        self.number("i", len(self.data) - vtable)
        return {index: self.number("I", value) for index, value in fields.items()}


def _front(
    model: Table, buffers: list[int], metadata: list[int], name: str, payload: bytes
) -> bytes:
    """Write the new root, its vectors and the new metadata, for old tables at these positions."""
    front = _Front()
    front.number("I", 0)
    front.data += model.file.data[4:8]
    used = [index for index in range(FIELDS) if model.at(index) is not None]
    fields = dict.fromkeys(sorted({*used, BUFFERS, METADATA}), 0)
    root = front.table(fields, FIELDS)
    front.point(0, min(root.values()) - 4)
    vectors = {}
    for index, old in ((BUFFERS, buffers), (METADATA, metadata)):
        front.align(4)
        vectors[index] = front.number("I", len(old) + 1) + 4
        front.data += bytes(4 * (len(old) + 1))
        front.point(root[index], vectors[index] - 4)
    entry = front.table({METADATA_NAME: 0, METADATA_BUFFER: len(buffers)}, 2)
    front.point(vectors[METADATA] + 4 * len(metadata), min(entry.values()) - 4)
    front.align(4)
    front.point(entry[METADATA_NAME], front.number("I", len(name)))
    front.data += name.encode() + b"\0"
    buffer = front.table({BUFFER_DATA: 0}, 1)
    front.point(vectors[BUFFERS] + 4 * len(buffers), buffer[BUFFER_DATA] - 4)
    front.align(SHIFT, 4)
    front.point(buffer[BUFFER_DATA], front.number("I", len(payload)))
    front.data += payload
    front.align(SHIFT)
    shift = len(front.data)
    for index, old in ((BUFFERS, buffers), (METADATA, metadata)):
        for place, position in enumerate(old):
            front.point(vectors[index] + 4 * place, shift + position)
    for index in used:
        at = model.at(index)
        assert at is not None
        if index == VERSION:
            struct.pack_into("<I", front.data, root[index], model.file.number("I", at))
        elif index not in vectors:
            front.point(root[index], shift + model.file.follow(at))
    return bytes(front.data)
