"""Files of tensors in the format `.safetensors`: a length, a header of JSON, and their bytes."""

import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tightship.errors import FormatError

HEADER_BYTES_MAX = 100_000_000
"""As the format has it."""
METADATA = "__metadata__"
DTYPES = {
    "bfloat16": "BF16", "bool": "BOOL", "float16": "F16", "float32": "F32", "float64": "F64",
    "int16": "I16", "int32": "I32", "int64": "I64", "int8": "I8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "uint8": "U8",
}  # fmt: skip
"""As the format names them, by NumPy's names."""

_ITEM_BYTES = {
    stored: np.dtype("int16" if name == "bfloat16" else name).itemsize
    for name, stored in DTYPES.items()
}
_TOO_MUCH = (OverflowError, RecursionError)
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


@dataclass(frozen=True, slots=True)
class Contents:
    """What the header of a file says.

    Attributes:
        tensors: By name.
        metadata: Texts by name.
    """

    tensors: dict[str, StoredTensor]
    metadata: dict[str, str]


def read_tensors(file: int) -> dict[str, StoredTensor]:
    """The tensors of a file, by name; only its header is read.

    Raises:
        FormatError: The bytes are not of that format, or a tensor lies beyond the end or has other
            bytes than its shape.
    """
    return read_contents(file).tensors


def read_contents(file: int) -> Contents:
    """The tensors of a file, and what it says of itself; only its header is read.

    Raises:
        FormatError: As `read_tensors`.
    """
    header_bytes = _LENGTH.unpack(_read(file, 0, _LENGTH.size))[0]
    if header_bytes > HEADER_BYTES_MAX:
        raise FormatError(f"A header of {header_bytes} bytes is too long for `.safetensors`.")
    start = _LENGTH.size + header_bytes
    try:
        header = json.loads(_read(file, _LENGTH.size, header_bytes))
        metadata = {str(key): str(text) for key, text in header.pop(METADATA, {}).items()}
        found = {name: _tensor(fields, start) for name, fields in header.items()}
    except (ValueError, TypeError, LookupError, AttributeError, *_TOO_MUCH) as error:
        raise FormatError(f"The header is none of `.safetensors`: {error!r}.") from None
    end = os.fstat(file).st_size
    for name, tensor in found.items():
        if not start <= tensor.offset_bytes <= end - tensor.size_bytes or tensor.size_bytes < 0:
            raise FormatError(
                f"Tensor `{name}` lies at byte {tensor.offset_bytes}, with {tensor.size_bytes} "
                f"bytes, of a file of {end}."
            )
        item_bytes = _ITEM_BYTES.get(tensor.dtype)
        if min(tensor.shape, default=0) < 0 or (
            item_bytes is not None and item_bytes * prod(tensor.shape) != tensor.size_bytes
        ):
            raise FormatError(
                f"Tensor `{name}` is {tensor.dtype} {list(tensor.shape)}, and has "
                f"{tensor.size_bytes} bytes."
            )
    return Contents(found, metadata)


def write_tensors(
    file: BinaryIO, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]
) -> None:
    """Write a whole file, each tensor from where it lies: none is held twice.

    Args:
        file: Empty.
        tensors: C-contiguous arrays of `DTYPES`.
        metadata: What the file says of itself.
    """
    ordered = sorted(tensors.items(), key=lambda item: -item[1].itemsize)  # so that all are aligned
    header: dict[str, object] = {METADATA: dict(metadata)}
    begin = 0
    for name, array in ordered:
        end = begin + array.nbytes
        dtype, shape = DTYPES[array.dtype.name], list(array.shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _LENGTH.size)
    file.write(_LENGTH.pack(len(text)) + text)
    for _, array in ordered:
        file.write(bytes_of(array))


def read_into(file: int, tensor: StoredTensor, array: NDArray[Any]) -> None:
    """Read a tensor into an array of its size.

    Raises:
        FormatError: The file has become shorter.
    """
    room = bytes_of(array)
    assert len(room) == tensor.size_bytes, (len(room), tensor.size_bytes)
    done = 0
    while done < len(room):
        count = os.preadv(file, [room[done:]], tensor.offset_bytes + done)
        if not count:
            raise FormatError(f"The file ends at byte {tensor.offset_bytes + done}.")
        done += count


def bytes_of(array: NDArray[Any]) -> memoryview:
    """The memory of a C-contiguous array."""
    assert array.flags.c_contiguous
    return array.reshape(-1).view(np.uint8).data


def _tensor(fields: Mapping[str, Any], start: int) -> StoredTensor:
    begin, end = fields["data_offsets"]
    shape = tuple(int(length) for length in fields["shape"])
    return StoredTensor(str(fields["dtype"]), shape, start + int(begin), int(end) - int(begin))


def _read(file: int, offset: int, size: int) -> bytes:
    data = os.pread(file, size, offset)
    if len(data) < size:
        raise FormatError(f"The file ends at byte {offset + len(data)}, within its header.")
    return data
