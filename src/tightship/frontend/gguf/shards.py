"""The files of a model in GGUF: one, or shards named `NAME-00001-of-0000N.gguf`."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from tightship.errors import FormatError, InputError
from tightship.frontend.gguf.header import Header, read_header
from tightship.frontend.gguf.metadata import Metadata
from tightship.frontend.gguf.tensor_table import StoredTensor
from tightship.graph import MappedFile

SHARD = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)
SHARDS_MAX = 1 << 10
"""Most files of a model."""
COUNT, NUMBER, TENSORS = "split.count", "split.no", "split.tensors.count"


@dataclass(frozen=True, slots=True)
class Placed:
    """Tensor and the file that has it."""

    file: MappedFile
    tensor: StoredTensor


@dataclass(frozen=True, slots=True)
class Contents:
    """Metadata and tensors of the files of a model.

    Attributes:
        metadata: Metadata of the first file.
        tensors: Tensors by name.
        files: The files, and the bytes that each must have.
    """

    metadata: Metadata
    tensors: dict[str, Placed]
    files: tuple[tuple[MappedFile, int], ...]

    def check_whole(self) -> None:
        """Check that no file is cut.

        Raises:
            FormatError: A tensor lies beyond the end of its file.
        """
        for file, end in self.files:
            if file.size_bytes < end:
                raise FormatError(
                    f"`{file.path}` has {file.size_bytes} bytes of {end}: its header is whole, but "
                    "tensors are missing. Finish the download; a plan needs the header alone."
                )

    def release(self) -> None:
        """Drop the resident pages of all files."""
        for file, _ in self.files:
            file.release()


def open_shards(path: Path) -> Contents:
    """Open a file, and the other shards if it is the first of several.

    Raises:
        FormatError: A file is not GGUF, or shards do not fit each other.
        InputError: A file cannot be opened.
    """
    return contents_of([_opened(path)], path)


def contents_of(files: list[MappedFile], path: Path | None) -> Contents:
    """Return what the first file and its other shards hold.

    Args:
        files: The first file.
        path: Path of that; None for a file in memory, which must not have shards.

    Raises:
        FormatError: A file is not GGUF, or shards do not fit each other.
        InputError: A file cannot be opened.
    """
    headers = [read_header(files[0])]
    metadata = Metadata(headers[0].path, headers[0].fields)
    count = metadata.integer(COUNT, 1, most=SHARDS_MAX) if _split(headers[0], COUNT) else 1
    if count > 1:
        for other in _others(headers[0], path, count):
            files.append(_opened(other))
            headers.append(read_header(files[-1]))
        for number, header in enumerate(headers):
            _check_shard(header, number, count)
    tensors: dict[str, Placed] = {}
    for file, header in zip(files, headers, strict=True):
        for name, tensor in header.tensors.items():
            if name in tensors:
                raise FormatError(
                    f"`{header.path}` has the tensor `{name}`, which `{tensors[name].file.path}` "
                    "has too. Download the shards of one model."
                )
            tensors[name] = Placed(file, tensor)
    if count > 1 and _split(headers[0], TENSORS) not in (0, len(tensors)):
        raise FormatError(
            f"`{headers[0].path}` and its shards have {len(tensors)} tensors; `{TENSORS}` says "
            f"{_split(headers[0], TENSORS)}. Download the shards of one model."
        )
    ends = [header.end_bytes for header in headers]
    return Contents(metadata, tensors, tuple(zip(files, ends, strict=True)))


def _split(header: Header, key: str) -> int:
    """Return a number of the division into shards; 0 if it is absent or not an integer."""
    found = header.fields.get(key, 0)
    return found if isinstance(found, int) else 0


def _others(first: Header, path: Path | None, count: int) -> list[Path]:
    match = SHARD.fullmatch("" if path is None else path.name)
    if path is None or match is None or int(match[3]) != count:
        raise FormatError(
            f"`{first.path}` is one of {count} shards, whose names must end with "
            f"`-00001-of-{count:05}.gguf` and so on. Give the first of them by its own name."
        )
    names = [f"{match[1]}-{number:05}-of-{match[3]}.gguf" for number in range(1, count + 1)]
    if int(match[2]) != 1:
        raise FormatError(f"`{first.path}` is shard {match[2]}; give the first, `{names[0]}`.")
    return [path.with_name(name) for name in names[1:]]


def _check_shard(header: Header, number: int, count: int) -> None:
    found = _split(header, NUMBER), _split(header, COUNT)
    if found != (number, count):
        raise FormatError(
            f"`{header.path}` says that it is shard {found[0]} of {found[1]}, counted from 0; its "
            f"name says {number} of {count}. Download the shards of one model."
        )


def _opened(path: Path) -> MappedFile:
    if not path.is_file():
        what = "is not a file" if path.exists() else "does not exist"
        raise InputError(f"The model `{path}` {what}.")
    try:
        return MappedFile(path, is_run=True)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise InputError(f"The model `{path}` cannot be opened: {reason}.") from None
