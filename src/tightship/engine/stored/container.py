"""Container of a prepared model: a header, packed weights and a program section.

    0        header, of a page
    4096     packed weights, each at a multiple of 64 bytes
    then     program section: JSON, then recipes

Everything that is checked before the content is trusted is here.
"""

import struct
import zlib
from os import PathLike
from typing import NamedTuple

from tightship.errors import FormatError
from tightship.graph.mapped_file import MappedFile

MAGIC = b"\x89tship\r\n"
VERSION = 1
PAGE_BYTES = 4096
FIELDS = struct.Struct("<8sI4x6Q2I")
"""Magic, version, file size, start and size of the weights, start and size of the JSON, size of the
recipes, checksums of the program section and of the fields before."""
CHECKED = FIELDS.size - 4


class Sections(NamedTuple):
    """Sizes of the parts of a file; weights take a multiple of a page."""

    weights_bytes: int
    text_bytes: int
    recipes_bytes: int

    @property
    def text_start(self) -> int:
        """Bytes from the start of the file to the program section."""
        return PAGE_BYTES + self.weights_bytes

    @property
    def file_bytes(self) -> int:
        """Size of the whole file."""
        return self.text_start + self.text_bytes + self.recipes_bytes


def header(sections: Sections, program: bytes) -> bytes:
    """Make the first page of a file with these sections; `program` is the last two."""
    checked = FIELDS.pack(
        MAGIC, VERSION, sections.file_bytes, PAGE_BYTES, sections.weights_bytes,
        sections.text_start, sections.text_bytes, sections.recipes_bytes, zlib.crc32(program), 0,
    )[:CHECKED]  # fmt: skip
    return (checked + struct.pack("<I", zlib.crc32(checked))).ljust(PAGE_BYTES, b"\0")


def holds_prepared(model: object) -> bool:
    """Whether a model is the path of a file that begins like a prepared one.

    Raises:
        OSError: The file does not exist, or cannot be read.
    """
    if not isinstance(model, str | PathLike):
        return False
    with open(model, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


class Container(NamedTuple):
    """Mapped file whose header and program section have the right checksums."""

    file: MappedFile
    sections: Sections

    @property
    def checksum(self) -> str:
        """Checksum of the header as hexadecimal digits; it covers that of the program section."""
        first = bytes(self.file.bytes_at(0, FIELDS.size))
        return first[CHECKED:].hex()

    @property
    def text(self) -> bytes:
        """JSON of the program section."""
        return bytes(self.file.bytes_at(self.sections.text_start, self.sections.text_bytes))

    def recipe(self, start: int, size: int) -> bytes:
        """Return bytes `[start, start + size)` of the recipes.

        Raises:
            FormatError: The range is outside the recipes.
        """
        sections = self.sections
        if not 0 <= start <= start + size <= sections.recipes_bytes:
            raise damaged(self.file.path, f"a recipe at [{start}, {start + size}) is outside them")
        first = sections.text_start + sections.text_bytes + start
        return bytes(self.file.bytes_at(first, size))

    def weights(self) -> memoryview:
        """Return all packed weights, mapped."""
        return self.file.bytes_at(PAGE_BYTES, self.sections.weights_bytes)


def open_container(path: str) -> Container:
    """Map a file and check its header and program section.

    Raises:
        FormatError: The file is not a prepared model, has another version, or is damaged.
        OSError: The file cannot be read.
    """
    file = MappedFile(path)
    if file.size_bytes < PAGE_BYTES:
        raise damaged(path, f"it has {file.size_bytes} bytes, less than a header")
    first = bytes(file.bytes_at(0, PAGE_BYTES))
    magic, version, size, start, weights, text_start, text, recipes, program, own = FIELDS.unpack(
        first[: FIELDS.size]
    )
    if magic != MAGIC:
        raise FormatError(f"`{path}` is not a prepared model; make one with `tightship prepare`.")
    if own != zlib.crc32(first[:CHECKED]) or any(first[FIELDS.size :]):
        raise damaged(path, "its header does not match its checksum")
    if version != VERSION:
        raise FormatError(
            f"`{path}` is a prepared model of form {version}; this Tightship reads form {VERSION}. "
            "Make it again with `tightship prepare`."
        )
    sections = Sections(weights, text, recipes)
    if (start, text_start, size) != (PAGE_BYTES, sections.text_start, sections.file_bytes):
        raise damaged(path, "its sections do not add up to its size")
    if file.size_bytes != size:
        raise damaged(path, f"it has {file.size_bytes} bytes of {size}")
    if zlib.crc32(file.bytes_at(text_start, text + recipes)) != program:
        raise damaged(path, "its program section does not match its checksum")
    return Container(file, sections)


def damaged(path: str | PathLike[str], reason: str) -> FormatError:
    """Make the error for a damaged file."""
    return FormatError(
        f"`{path}` is a damaged prepared model: {reason}. Make it again with `tightship prepare`."
    )
