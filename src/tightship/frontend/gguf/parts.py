"""Matrices of a GGUF file as constants: where the file has them, or its blocks taken apart.

A block has a scale of float16 before its integers. Kernels read integers and scales of a matrix
apart, four bits of neighbours in a byte; blocks of GGUF have the first half of their elements in
the low bits. Both parts have as many bytes as the blocks, which are read a few rows at a time.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from tightship.frontend.gguf.shards import Placed
from tightship.graph import Constant, DType, Mapped
from tightship.graph.row_by_row import Bytes, RowByRow
from tightship.graph.row_codes import ROW_CODES, row_bytes

BLOCK = 32
SCALE_BYTES = 2
PLAIN = {"F32": DType.FLOAT32, "F16": DType.FLOAT16, "BF16": DType.BFLOAT16}
"""Types whose elements are numbers by themselves."""
BITS = {"Q4_0": 4, "Q8_0": 8}
"""Types of blocks of integers with a scale, and the bits of an integer."""
TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
"""Types that matrices may have."""


def plain(placed: Placed) -> Mapped:
    """Return a tensor whose elements are numbers, where the file has it."""
    tensor = placed.tensor
    return Mapped(placed.file, tensor.offset_bytes, PLAIN[tensor.type.name], tensor.shape)


def encoded_rows(placed: Placed) -> Mapped | None:
    """Return the bytes of a matrix by row; None unless kernels read its rows as they are."""
    tensor = placed.tensor
    rows, depth = tensor.shape
    size = row_bytes(tensor.type.name, depth) if tensor.type.name in ROW_CODES else 0
    return Mapped(placed.file, tensor.offset_bytes, DType.UINT8, (rows, size)) if size else None


def integers_and_scales(placed: Placed) -> tuple[Constant, Constant]:
    """Return the parts of a matrix of integers: bytes by row, and a scale for each block."""
    tensor = placed.tensor
    name, size = tensor.type.name, tensor.type.size_bytes
    rows, depth = tensor.shape
    blocks, bits = depth // BLOCK, BITS[name]
    stored = Mapped(placed.file, tensor.offset_bytes, DType.UINT8, (rows, blocks * size))
    take = partial(_integers, size, bits)
    row_bytes = blocks * BLOCK * bits // 8
    return (
        RowByRow(DType.UINT8, (rows, row_bytes), stored, take, ("gguf integers", name)),
        RowByRow(DType.FLOAT16, (rows, blocks), stored, partial(_scales, size),
                 ("gguf scales", name)),
    )  # fmt: skip


def _scales(size: int, raw: Bytes) -> NDArray[np.float16]:
    found = np.ascontiguousarray(_blocks(size, raw)[..., :SCALE_BYTES])
    return found.view("<f2")[..., 0]


def _integers(size: int, bits: int, raw: Bytes) -> Bytes:
    """Return the integers of blocks, as unsigned ones."""
    blocks = _blocks(size, raw)[..., SCALE_BYTES:]
    found = blocks ^ np.uint8(128) if bits == 8 else _neighbours(blocks)
    return found.reshape(len(raw), -1)


def _neighbours(blocks: Bytes) -> Bytes:
    """Return bytes of the elements 2i and 2i + 1, of bytes of the elements i and i + 16."""
    pairs = np.ascontiguousarray(blocks).view("<u2")
    found = np.empty((*blocks.shape[:-1], 2, BLOCK // 4), np.uint8)
    low, high = pairs & np.uint16(0x0F0F), pairs >> np.uint16(4) & np.uint16(0x0F0F)
    for place, part in enumerate((low, high)):
        found[..., place, :] = (part | part >> np.uint16(4)).astype(np.uint8)
    return found.reshape(blocks.shape)


def _blocks(size: int, raw: Bytes) -> Bytes:
    return raw.reshape(len(raw), -1, size)
