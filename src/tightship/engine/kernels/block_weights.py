"""Matrices of small integers with a scale for each block of a row, made real."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, require
from tightship.graph import element_count

CHUNK_ELEMENTS = 1 << 16
"""Approximate number of elements that are made real at once."""

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class BlockForm:
    """Form of a matrix whose rows are blocks of integers, each block in whole bytes.

    An element is `(integer - zero) * scale` of its block; the lowest bits of a byte come first.

    Attributes:
        rows: Rows of the matrix.
        depth: Elements of a row; the last block may be cut.
        bits: Bits of an integer: 2, 4 or 8.
        block: Elements of a block.
        is_signed: Whether integers are in two's complement.
    """

    rows: int
    depth: int
    bits: int
    block: int
    is_signed: bool = False

    @property
    def blocks(self) -> int:
        """Blocks of a row."""
        return -(-self.depth // self.block)

    @property
    def row_bytes(self) -> int:
        """Bytes of the integers of a row."""
        return self.blocks * self.block * self.bits // 8

    @property
    def zero_bytes(self) -> int:
        """Bytes of the zero points of a row, if these are integers."""
        return -(-self.blocks * self.bits // 8)

    @property
    def middle(self) -> int:
        """Zero point where there is none."""
        return 0 if self.is_signed else 1 << (self.bits - 1)


def unpacked(raw: Bytes, bits: int, *, is_signed: bool = False) -> Array:
    """Return integers of 2, 4 or 8 bits from bytes, along the last axis, the lowest first."""
    if bits == 8:
        return raw.view(np.int8) if is_signed else raw
    lanes, mask = 8 // bits, (1 << bits) - 1
    codes = np.empty((*raw.shape, lanes), np.uint8)
    for lane in range(lanes):
        codes[..., lane] = raw >> (bits * lane) & mask
    flat = codes.reshape(*raw.shape[:-1], -1)
    if not is_signed:
        return flat
    half = np.uint8(1 << (bits - 1))
    return ((flat ^ half) - half).view(np.int8)


def packed(codes: Bytes, bits: int) -> Bytes:
    """Pack the low bits of bytes along the first axis, the lowest first; inverse of `unpacked`.

    The axis is padded with zeros to whole bytes.
    """
    if bits == 8:
        return codes
    lanes = 8 // bits
    room = np.zeros((-(-len(codes) // lanes), *codes.shape[1:]), np.uint8)
    for lane in range(lanes):
        part = codes[lane::lanes] & np.uint8((1 << bits) - 1)
        room[: len(part)] |= part << np.uint8(bits * lane)
    return room


def dequantize(
    form: BlockForm, integers: Bytes, scales: Array, zeros: Array | None, out: Array
) -> None:
    """Write the real elements to `out`, [rows, depth], some rows at a time.

    Args:
        form: Form of the matrix.
        integers: Bytes, in any shape.
        scales: A scale for each block, in any shape, or for each row.
        zeros: Zero points: bytes with `form.zero_bytes` a row, or a real number for each block;
            for each row as the scales; None if they are `form.middle`.
        out: Array of float32, or of a half type.
    """
    raw = integers.reshape(form.rows, form.row_bytes)
    factors = scales.reshape(form.rows, scales.size // max(form.rows, 1), 1)
    step = max(CHUNK_ELEMENTS // max(form.blocks * form.block, 1), 1)
    for start in range(0, form.rows, step):
        part = slice(start, start + step)
        codes = unpacked(raw[part], form.bits, is_signed=form.is_signed)
        real = codes.astype(np.float32).reshape(-1, form.blocks, form.block)
        real -= form.middle if zeros is None else _zeros(form, zeros, part, factors.shape[1])
        real *= factors[part].astype(np.float32)
        out[part] = real.reshape(len(real), -1)[:, : form.depth]


def _zeros(form: BlockForm, zeros: Array, rows: slice, blocks: int) -> NDArray[np.float32]:
    """Return the zero points of some rows, [rows, blocks, 1]; `blocks` is 1 if it has one."""
    if zeros.dtype == np.uint8:
        raw = zeros.reshape(form.rows, -1)[rows]
        zeros = unpacked(raw, form.bits, is_signed=form.is_signed)[:, :blocks]
    else:
        zeros = zeros.reshape(form.rows, -1)[rows]
    return zeros.astype(np.float32)[:, :, None]


def dequantize_blocks(context: KernelContext) -> Kernel:
    """Make the kernel for a matrix that is known only while running."""
    rows, depth = context.output_shape()
    form = BlockForm(rows, depth, context.integer("bits", 4), context.integer("block_size", 0))
    require(context.dtype(0) == np.uint8 and form.block > 0)
    require(element_count(context.shape(0)) == rows * form.row_bytes)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        zeros = inputs[2] if len(inputs) > 2 else None
        dequantize(form, inputs[0], inputs[1], zeros, outputs[0])

    return Kernel("DequantizeBlocks", run)
