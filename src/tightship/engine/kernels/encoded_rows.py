"""Matrices whose rows are encoded as GGUF files have them, made real.

A row consists of halves, or of blocks of 32 or 256 small integers with scales, named as llama.cpp
names them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, require
from tightship.graph import element_count
from tightship.graph.row_codes import ROW_CODES, row_bytes

CHUNK_BYTES = 1 << 16
"""Approximate bytes that are made real at once."""

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


def decode(kind: str, rows: Bytes, out: Array) -> None:
    """Write the real elements of encoded rows, [rows, bytes], to `out`, [rows, depth]."""
    elements, size = ROW_CODES[kind]
    decoded = DECODERS[kind]
    step = max(CHUNK_BYTES // max(rows.shape[1], 1), 1)
    for start in range(0, len(rows), step):
        blocks = rows[start : start + step].reshape(-1, size)
        real = decoded(blocks).reshape(-1, rows.shape[1] // size * elements)
        out[start : start + step] = real


def _half(blocks: Bytes, place: int) -> Floats:
    """Return the float16 at a place of each block, [blocks, 1]."""
    return np.ascontiguousarray(blocks[:, place : place + 2]).view("<f2").astype(np.float32)


def _halves(blocks: Bytes) -> Floats:
    return blocks.view("<f2").astype(np.float32)


def _bfloats(blocks: Bytes) -> Floats:
    return (blocks.view("<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)


def _nibbles(quants: Bytes) -> Bytes:
    """Return the low halves of bytes, then the high ones, along the last axis."""
    return np.concatenate([quants & 15, quants >> 4], -1)


def _fifths(bits: Bytes) -> Bytes:
    """Return the bits of four bytes as fifth bits of 32 elements."""
    return np.unpackbits(bits, axis=-1, bitorder="little") << np.uint8(4)


def _q4_1(blocks: Bytes) -> Floats:
    return _nibbles(blocks[:, 4:]) * _half(blocks, 0) + _half(blocks, 2)


def _q5_0(blocks: Bytes) -> Floats:
    quants = _nibbles(blocks[:, 6:]) | _fifths(blocks[:, 2:6])
    return (quants.astype(np.float32) - 16) * _half(blocks, 0)


def _q5_1(blocks: Bytes) -> Floats:
    quants = _nibbles(blocks[:, 8:]) | _fifths(blocks[:, 4:8])
    return quants * _half(blocks, 0) + _half(blocks, 2)


def _six_bits(packed: Bytes) -> tuple[Bytes, Bytes]:
    """Return factors and least numbers of eight groups, of twelve bytes."""
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    factors = [first & 63, third & 15 | first >> 6 << 4]
    least = [second & 63, third >> 4 | second >> 6 << 4]
    return np.concatenate(factors, -1), np.concatenate(least, -1)


def _by_groups(blocks: Bytes, quants: Bytes) -> Floats:
    """Return elements of eight groups of 32, [blocks, 8, 32]."""
    factors, least = _six_bits(blocks[:, 4:16])
    scale, below = _half(blocks, 0) * factors, _half(blocks, 2) * least
    real: Floats = quants * scale[..., None] - below[..., None]
    return real


def _grouped(quants: Bytes) -> Bytes:
    """Return nibbles of 128 bytes by group, [blocks, 8, 32]."""
    return _nibbles(quants.reshape(-1, 4, 32)).reshape(-1, 8, 32)


def _q4_k(blocks: Bytes) -> Floats:
    return _by_groups(blocks, _grouped(blocks[:, 16:]))


def _q5_k(blocks: Bytes) -> Floats:
    shifts = np.arange(8, dtype=np.uint8)[:, None]
    fifths = (blocks[:, None, 16:48] >> shifts & np.uint8(1)) << np.uint8(4)
    return _by_groups(blocks, _grouped(blocks[:, 48:]) | fifths)


def _q6_k(blocks: Bytes) -> Floats:
    low = _nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> shifts & 3
    quants = (low | high << np.uint8(4)).astype(np.float32) - 32
    factors = blocks[:, 192:208].view(np.int8) * _half(blocks, 208)
    return quants.reshape(-1, 16, 16) * factors[..., None]


DECODERS: Mapping[str, Callable[[Bytes], NDArray[Any]]] = {
    "F16": _halves, "BF16": _bfloats, "Q4_1": _q4_1, "Q5_0": _q5_0, "Q5_1": _q5_1, "Q4_K": _q4_k,
    "Q5_K": _q5_k, "Q6_K": _q6_k,
}  # fmt: skip
"""Functions that make blocks real, by type."""


def dequantize_rows(context: KernelContext) -> Kernel:
    """Make the kernel for a matrix that is known only while running."""
    rows, depth = context.output_shape()
    kind = context.text("type", "")
    require(kind in ROW_CODES and context.dtype(0) == np.uint8)
    size = row_bytes(kind, depth)
    require(size > 0 and element_count(context.shape(0)) == rows * size)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        decode(kind, inputs[0].reshape(rows, size), outputs[0])

    return Kernel("DequantizeRows", run)
