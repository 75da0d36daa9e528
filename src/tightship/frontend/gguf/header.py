"""The header of a GGUF file: its metadata, and where its tensors lie."""

from typing import NamedTuple

from tightship.errors import FormatError
from tightship.frontend.gguf.cursor import Cursor
from tightship.frontend.gguf.fields import Field, read_field
from tightship.frontend.gguf.tensor_table import (
    TENSOR_BYTES_MIN,
    TENSORS_MAX,
    StoredTensor,
    placed,
    read_table,
)
from tightship.frontend.gguf_letters import MAGIC
from tightship.graph import MappedFile

VERSIONS = (2, 3)
KEY_BYTES_MAX = 65_535
PAIRS_MAX = 1 << 12
"""Most keys of a file."""
PAIR_BYTES_MIN = 13
"""Bytes of a pair: its key's length, the type of its value, and a byte of it."""
ALIGNMENT = "general.alignment"
ALIGNMENTS = tuple(1 << power for power in range(3, 17))


class Header(NamedTuple):
    """Header of a file.

    Attributes:
        path: Name of the file in messages.
        fields: Metadata by key.
        tensors: Tensors by name.
    """

    path: str
    fields: dict[str, Field]
    tensors: dict[str, StoredTensor]

    @property
    def end_bytes(self) -> int:
        """Bytes that the file must have for all its tensors."""
        return max((tensor.end_bytes for tensor in self.tensors.values()), default=0)


def is_gguf(file: MappedFile) -> bool:
    """Whether a file begins as a GGUF file does."""
    return file.size_bytes >= len(MAGIC) and bytes(file.bytes_at(0, len(MAGIC))) == MAGIC


def read_header(file: MappedFile) -> Header:
    """Read the header; the data may be cut, as that of a download that has only begun.

    Raises:
        FormatError: It is not a header of version 2 or 3 in little-endian order, or is cut.
    """
    cursor = Cursor(file.bytes_at(0, file.size_bytes), str(file.path))
    if not is_gguf(file):
        raise FormatError(
            f"`{cursor.path}` does not begin with the letters GGUF; give a GGUF file."
        )
    cursor.skip(len(MAGIC), 1, "the first letters")
    _check_version(cursor)
    tensor_count = cursor.u64("the number of tensors")
    pair_count = cursor.u64("the number of keys")
    cursor.bounded(pair_count, PAIR_BYTES_MIN, PAIRS_MAX, "the number of keys")
    cursor.bounded(tensor_count, TENSOR_BYTES_MIN, TENSORS_MAX, "the number of tensors")
    fields = _read_fields(cursor, pair_count)
    alignment = _alignment(cursor, fields)
    table = read_table(cursor, tensor_count)
    start = -(-cursor.place // alignment) * alignment
    return Header(cursor.path, fields, placed(cursor, table, start, alignment))


def _check_version(cursor: Cursor) -> None:
    version = cursor.u32("the version")
    if version in VERSIONS:
        return
    swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
    if swapped in VERSIONS:
        raise cursor.refusal(
            "its numbers are big-endian, which is not supported; they must be little-endian",
            is_cut=False,
        )
    raise cursor.refusal(f"its version is {version}; it must be 2 or 3", is_cut=False)


def _read_fields(cursor: Cursor, count: int) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for index in range(count):
        key = cursor.text(f"key {index}", KEY_BYTES_MAX)
        if key in fields:
            raise cursor.refusal(f"two keys are `{key}`", is_cut=False)
        fields[key] = read_field(cursor, key)
    return fields


def _alignment(cursor: Cursor, fields: dict[str, Field]) -> int:
    found = fields.get(ALIGNMENT, 32)
    if isinstance(found, bool) or found not in ALIGNMENTS:
        shown = found if isinstance(found, int | float) else "not a number"
        raise cursor.refusal(
            f"`{ALIGNMENT}` is {shown}; it must be a power of two from {ALIGNMENTS[0]} to "
            f"{ALIGNMENTS[-1]}", is_cut=False,
        )  # fmt: skip
    assert isinstance(found, int)
    return found
