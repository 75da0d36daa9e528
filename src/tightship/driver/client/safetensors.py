"""Where the tensors of a `.safetensors` file lie, to be constants of a model where they are."""

import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tightship.errors import FormatError

HEADER_BYTES_MAX = 100_000_000
"""As the format has it."""

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor of a file.

    Attributes:
        dtype: As the format names it: `F32`, `I64`, ...
        offset_bytes: Of its first byte in the file.
    """

    dtype: str
    shape: tuple[int, ...]
    offset_bytes: int
    size_bytes: int


def read_tensors(file: int) -> dict[str, StoredTensor]:
    """The tensors of a file, by name; only its header is read.

    Raises:
        FormatError: The bytes are not of that format, or a tensor lies beyond the end.
    """
    header_bytes = _LENGTH.unpack(_read(file, 0, _LENGTH.size))[0]
    if header_bytes > HEADER_BYTES_MAX:
        raise FormatError(f"A header of {header_bytes} bytes is too long for `.safetensors`.")
    start = _LENGTH.size + header_bytes
    try:
        header = json.loads(_read(file, _LENGTH.size, header_bytes))
        found = {
            name: _tensor(fields, start)
            for name, fields in header.items()
            if name != "__metadata__"
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FormatError(f"The header is none of `.safetensors`: {error!r}.") from None
    end = os.fstat(file).st_size
    for name, tensor in found.items():
        if not start <= tensor.offset_bytes <= end - tensor.size_bytes or tensor.size_bytes < 0:
            raise FormatError(
                f"Tensor `{name}` lies at byte {tensor.offset_bytes}, with {tensor.size_bytes} "
                f"bytes, of a file of {end}."
            )
    return found


def _tensor(fields: Mapping[str, Any], start: int) -> StoredTensor:
    begin, end = fields["data_offsets"]
    shape = tuple(int(length) for length in fields["shape"])
    return StoredTensor(str(fields["dtype"]), shape, start + int(begin), int(end) - int(begin))


def _read(file: int, offset: int, size: int) -> bytes:
    data = os.pread(file, size, offset)
    if len(data) < size:
        raise FormatError(f"The file ends at byte {offset + len(data)}, within its header.")
    return data
