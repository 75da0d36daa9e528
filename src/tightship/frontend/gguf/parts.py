"""Matrices of a GGUF file as constants: where the file has them, or its blocks taken apart.

A block has a scale of float16 before its integers. Kernels read integers and scales of a matrix
apart, four bits of neighbours in a byte; blocks of GGUF have the first half of their elements in
the low bits. Both parts have as many bytes as the blocks, which are read a few rows at a time.
"""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tightship._core import gguf_integers, gguf_scales
from tightship.graph import Constant, DType, Mapped
from tightship.graph.row_by_row import Bytes, RowByRow
from tightship.graph.row_codes import ROW_CODES, row_bytes

if TYPE_CHECKING:
    from tightship.frontend.gguf.shards import Placed  # a kept program needs no header

BLOCK = 32
SCALE_BYTES = 2
PLAIN = {"F32": DType.FLOAT32, "F16": DType.FLOAT16, "BF16": DType.BFLOAT16}
"""Types whose elements are numbers by themselves."""
BITS = {"Q4_0": 4, "Q8_0": 8}
"""Types of blocks of integers with a scale, and the bits of an integer."""
INTEGERS, SCALES = "gguf integers", "gguf scales"
"""Parts of a matrix of blocks, as recipes of constants name them."""
TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
"""Types that matrices may have."""


def plain(placed: "Placed") -> Mapped:
    """Return a tensor whose elements are numbers, where the file has it."""
    tensor = placed.tensor
    return Mapped(placed.file, tensor.offset_bytes, PLAIN[tensor.type.name], tensor.shape)


def encoded_rows(placed: "Placed") -> Mapped | None:
    """Return the bytes of a matrix by row; None unless kernels read its rows as they are."""
    tensor = placed.tensor
    rows, depth = tensor.shape
    size = row_bytes(tensor.type.name, depth) if tensor.type.name in ROW_CODES else 0
    return Mapped(placed.file, tensor.offset_bytes, DType.UINT8, (rows, size)) if size else None


def integers_and_scales(placed: "Placed") -> tuple[Constant, Constant]:
    """Return the parts of a matrix of integers: bytes by row, and a scale for each block."""
    tensor = placed.tensor
    name, size = tensor.type.name, tensor.type.size_bytes
    rows, depth = tensor.shape
    shape = rows, depth // BLOCK * size
    stored = Mapped(placed.file, tensor.offset_bytes, DType.UINT8, shape)
    return part_of(stored, INTEGERS, name), part_of(stored, SCALES, name)


def part_of(stored: Mapped, part: str, name: str) -> RowByRow:
    """Return a part of a matrix of integers.

    Args:
        stored: Bytes of the matrix in the file, by row.
        part: `INTEGERS` or `SCALES`.
        name: Type of the blocks, of `BITS`.
    """
    rows, size = stored.shape
    bits = BITS[name]
    blocks = size // _block_bytes(bits)
    if part == SCALES:
        scales = partial(_scales, bits)
        return RowByRow(DType.FLOAT16, (rows, blocks), stored, scales, (SCALES, name))
    shape = rows, blocks * BLOCK * bits // 8
    integers = partial(_integers, bits)
    return RowByRow(DType.UINT8, shape, stored, integers, (INTEGERS, name))


def _scales(bits: int, raw: Bytes) -> NDArray[np.float16]:
    """Return the scales of blocks, by row."""
    found = np.empty((len(raw), raw.shape[1] // _block_bytes(bits)), "<f2")
    gguf_scales(raw.reshape(-1), bits, found.view(np.uint8).reshape(-1))
    return found


def _integers(bits: int, raw: Bytes) -> Bytes:
    """Return the integers of blocks by row, as unsigned ones."""
    size = _block_bytes(bits)
    found = np.empty((len(raw), raw.shape[1] // size * (size - SCALE_BYTES)), np.uint8)
    gguf_integers(raw.reshape(-1), bits, found.reshape(-1))
    return found


def _block_bytes(bits: int) -> int:
    return SCALE_BYTES + BLOCK * bits // 8
