"""Reads and writes `.safetensors` files: a length, a header in JSON, and the bytes of tensors."""

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
"""Largest header that the format allows."""
METADATA = "__metadata__"
DTYPES = {
    "bfloat16": "BF16", "bool": "BOOL", "float16": "F16", "float32": "F32", "float64": "F64",
    "int16": "I16", "int32": "I32", "int64": "I64", "int8": "I8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "uint8": "U8",
}  # fmt: skip
"""NumPy's names of dtypes, and the names that the format gives them."""

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
        dtype: Name of the dtype in the format: `F32`, `I64`, ...
        shape: Lengths of the axes.
        offset_bytes: Position of the tensor's first byte in the file.
        size_bytes: Bytes that the tensor takes.
    """

    dtype: str
    shape: tuple[int, ...]
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Contents:
    """The header of a file.

    Attributes:
        tensors: The tensors by name.
        metadata: The file's own texts by name.
    """

    tensors: dict[str, StoredTensor]
    metadata: dict[str, str]


def read_tensors(file: int) -> dict[str, StoredTensor]:
    """Read the header of a file and return its tensors by name.

    Args:
        file: Descriptor of the file; its position is not used.

    Raises:
        FormatError: The file is not in this format, or a tensor lies beyond the end of the file or
            has a size that its shape contradicts.
    """
    return read_contents(file).tensors


def read_contents(file: int) -> Contents:
    """Read the header of a file: its tensors and its metadata.

    Args:
        file: Descriptor of the file; its position is not used.

    Raises:
        FormatError: As `read_tensors`.
    """
    header_bytes = _LENGTH.unpack(_read(file, 0, _LENGTH.size))[0]
    if header_bytes > HEADER_BYTES_MAX:
        raise FormatError(
            f"The header has {header_bytes} bytes; a `.safetensors` file has at most "
            f"{HEADER_BYTES_MAX}."
        )
    start = _LENGTH.size + header_bytes
    try:
        header = json.loads(_read(file, _LENGTH.size, header_bytes))
        metadata = {str(key): str(text) for key, text in header.pop(METADATA, {}).items()}
        found = {name: _tensor(fields, start) for name, fields in header.items()}
    except (ValueError, TypeError, LookupError, AttributeError, *_TOO_MUCH) as error:
        raise FormatError(f"The header is not one of `.safetensors`: {error!r}.") from None
    end = os.fstat(file).st_size
    for name, tensor in found.items():
        if not start <= tensor.offset_bytes <= end - tensor.size_bytes or tensor.size_bytes < 0:
            raise FormatError(
                f"Tensor `{name}` has {tensor.size_bytes} bytes from byte {tensor.offset_bytes} "
                f"on; tensors lie in bytes [{start}, {end}) of the file."
            )
        item_bytes = _ITEM_BYTES.get(tensor.dtype)
        if min(tensor.shape, default=0) < 0 or (
            item_bytes is not None and item_bytes * prod(tensor.shape) != tensor.size_bytes
        ):
            raise FormatError(
                f"Tensor `{name}` is {tensor.dtype} {list(tensor.shape)}, which does not fit its "
                f"{tensor.size_bytes} bytes."
            )
    return Contents(found, metadata)


def write_tensors(
    file: BinaryIO, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]
) -> None:
    """Write a whole file straight from the arrays, without a second copy of any tensor in memory.

    Args:
        file: An empty file.
        tensors: C-contiguous arrays, whose dtypes are in `DTYPES`.
        metadata: Texts by name to store in the header.
    """
    # Larger elements first, so that each tensor starts at a multiple of its own element size.
    ordered = sorted(tensors.items(), key=lambda item: -item[1].itemsize)
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
    """Read a tensor from a file into an array of the same size.

    Args:
        file: Descriptor of the file; its position is not used.
        tensor: The tensor, as `read_tensors` returned it.
        array: A writable C-contiguous array of `tensor.size_bytes` bytes.

    Raises:
        FormatError: The file has been shortened since its header was read.
    """
    room = bytes_of(array)
    assert len(room) == tensor.size_bytes, (len(room), tensor.size_bytes)
    done = 0
    while done < len(room):
        # One call reads at most 2 GiB, so large tensors take several.
        count = os.preadv(file, [room[done:]], tensor.offset_bytes + done)
        if not count:
            raise FormatError(f"The file ends at byte {tensor.offset_bytes + done}.")
        done += count


def bytes_of(array: NDArray[Any]) -> memoryview:
    """Return the memory of a C-contiguous array as a flat view of bytes."""
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
