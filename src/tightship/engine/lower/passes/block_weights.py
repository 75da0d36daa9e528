"""Makes constant matrices in blocks of the constants that a node dequantizes."""

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial

import numpy as np

from tightship.engine.kernels.block_weights import (
    BlockForm,
    Bytes,
    dequantize,
    packed,
    unpacked,
)
from tightship.engine.lower.passes.blocks import Blocks, BlockWeights, EncodedRows
from tightship.engine.lower.passes.dequantized import Dequantized
from tightship.engine.lower.passes.encoded_rows import encoded_weights, rows_of
from tightship.engine.lower.passes.reshaped import reshaped
from tightship.engine.lower.passes.widened import Widened, widened
from tightship.graph import Constant, Derived, DType, Fill, Inline, Mapped, Node, element_count
from tightship.graph.constant import Array

INTEGERS = {
    DType.INT2: (2, True), DType.UINT2: (2, False), DType.INT4: (4, True), DType.UINT4: (4, False),
    DType.INT8: (8, True), DType.UINT8: (8, False),
}  # fmt: skip
"""Bits of an element, and whether it is signed, by element type."""
BLOCK_MIN = 16
"""Least length of a block that kernels take, which is a power of two."""
BLOCK_MAX = 256
"""Longest block of those that share a scale."""
REALS = frozenset({DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16})


def _weights(blocks: Blocks | EncodedRows, dtype: DType, *, is_turned: bool) -> BlockWeights:
    if isinstance(blocks, EncodedRows):
        return encoded_weights(blocks, dtype, is_turned=is_turned)
    form = blocks.form
    shape = (form.depth, form.rows) if is_turned else (form.rows, form.depth)
    numbers = tuple(getattr(form, each.name) for each in fields(form))
    recipe = "blocks", numbers, blocks.mode, is_turned, blocks.zeros is None
    compute = partial(_computed, blocks, dtype, is_turned)
    return BlockWeights(
        dtype, shape, compute, blocks.constants, recipe, blocks=blocks, is_turned=is_turned
    )


def _computed(blocks: Blocks, dtype: DType, is_turned: bool) -> Array:  # noqa: FBT001
    form = blocks.form
    found = np.empty((form.rows, form.depth), dtype.numpy)
    zeros = None if blocks.zeros is None else blocks.zeros.array()
    dequantize(form, blocks.integers.array().view(np.uint8), blocks.scales.array(), zeros, found)
    return found.T if is_turned else found


def block_weights(
    node: Node, operands: Sequence[Constant | None], dtype: DType | None
) -> BlockWeights | None:
    """Return the result of a node on constants as a matrix in blocks; None if it is not one.

    Such nodes dequantize in blocks, or transpose or widen a matrix in blocks.
    """
    if dtype not in REALS:
        return None
    match node.domain, node.operator:
        case "tightship", "DequantizeBlocks":
            return _of_bytes(node, operands, dtype)
        case "tightship", "DequantizeRows":
            return rows_of(node, operands[0], dtype)
        case "", "DequantizeLinear":
            make = _of_tensor if node.attributes.get("block_size", 0) else _of_axis
            return make(node, operands, dtype)
        case "", "Transpose" | "Cast":
            return _of_matrix(node, operands[0], dtype)
    return None


def _of_matrix(node: Node, first: Constant | None, dtype: DType) -> BlockWeights | None:
    """Transpose or widen a matrix in blocks."""
    if isinstance(first, Dequantized) and node.operator == "Transpose":
        first = weights_by_channels(first)
    if not isinstance(first, BlockWeights) or first.blocks is None:
        return None
    if node.operator == "Transpose" and node.attributes.get("perm", (1, 0)) == (1, 0):
        return _weights(first.blocks, dtype, is_turned=not first.is_turned)
    if node.operator == "Cast" and dtype is DType.FLOAT32:
        return _weights(first.blocks, dtype, is_turned=first.is_turned)
    return None


def _of_bytes(node: Node, operands: Sequence[Constant | None], dtype: DType) -> BlockWeights | None:
    """Read the operands of a DequantizeBlocks, which the frontend has checked."""
    integers, scales, zeros = (*operands, None)[:3]
    names = "rows", "depth", "bits", "block_size"
    rows, depth, bits, size = (int(str(node.attributes[name])) for name in names)
    form = BlockForm(rows, depth, bits, size)
    if integers is None or scales is None:
        return None
    shape = form.rows, form.blocks
    if zeros is not None:
        is_bytes = zeros.dtype is DType.UINT8
        zeros = reshaped(zeros, (form.rows, form.zero_bytes) if is_bytes else shape)
        zeros = zeros if is_bytes else _taken(zeros)
    blocks = Blocks(
        form, reshaped(integers, (form.rows, form.row_bytes)), _scales(scales, shape, zeros),
        zeros, str(node.attributes["mode"]),
    )  # fmt: skip
    return _weights(blocks, dtype, is_turned=False)


def _scales(scales: Constant, shape: tuple[int, int], zeros: Constant | None) -> Constant:
    """Return scales as kernels read them; those that are stored as float16 stay so.

    Zero points that are reals have the type of the scales.
    """
    if isinstance(scales, Widened) and (zeros is None or zeros.dtype is DType.UINT8):
        narrow = scales.narrow
        if narrow is not None and narrow.dtype is DType.FLOAT16:
            return reshaped(narrow, shape)
    return _taken(reshaped(scales, shape))


def _taken(reals: Constant) -> Constant:
    """Return reals of a type that kernels read."""
    return widened(reals) if reals.dtype is DType.BFLOAT16 else reals


def _of_tensor(
    node: Node, operands: Sequence[Constant | None], dtype: DType
) -> BlockWeights | None:
    """Read the operands of a DequantizeLinear in blocks along an axis of a matrix."""
    integers, scales, zeros = (*operands, None)[:3]
    block, axis = node.attributes.get("block_size", 0), node.attributes.get("axis", 1)
    if integers is None or scales is None or len(integers.shape) != 2 or len(scales.shape) != 2:
        return None
    if integers.dtype not in INTEGERS or scales.dtype not in REALS or axis not in (-2, -1, 0, 1):
        return None
    assert isinstance(block, int)
    is_turned = axis in (-2, 0)
    rows, depth = integers.shape[::-1] if is_turned else integers.shape
    if block < BLOCK_MIN or block & (block - 1) or depth % block:
        return None
    bits, is_signed = INTEGERS[integers.dtype]
    form = BlockForm(rows, depth, bits, block, is_signed)
    wanted = (form.blocks, rows) if is_turned else (rows, form.blocks)
    if scales.shape != wanted or (zeros is not None and zeros.shape != wanted):
        return None
    narrow = _scales(scales, wanted, None)
    return _weights(
        Blocks(
            form,
            _bytes_by_row(integers, bits, is_turned=is_turned),
            _turned(narrow) if is_turned else narrow,
            _zeros(form, zeros, is_turned=is_turned),
            "exact",
        ),
        dtype,
        is_turned=is_turned,
    )


def _of_axis(node: Node, operands: Sequence[Constant | None], dtype: DType) -> BlockWeights | None:
    """Read the operands of a DequantizeLinear with a scale for each index of an axis."""
    axis = node.integer("axis", 1)
    integers, scales, zeros = (*operands, None)[:3]
    return _of_channels(integers, scales, zeros, axis, dtype)


def weights_by_channels(constant: Dequantized) -> BlockWeights | None:
    """Return a matrix of 8 bits with a scale for each channel as one in blocks, if it can be."""
    operands = constant.integers, constant.scale, constant.zero
    return _of_channels(*operands, constant.axis, constant.dtype)


def _of_channels(
    integers: Constant | None,
    scales: Constant | None,
    zeros: Constant | None,
    axis: int,
    dtype: DType,
) -> BlockWeights | None:
    """Make a matrix in blocks of integers with a scale for each index of an axis.

    The blocks of a row, or of a column, share its scale.
    """
    if integers is None or scales is None or len(integers.shape) != 2:
        return None
    if integers.dtype not in INTEGERS or scales.dtype not in REALS or axis not in (-2, -1, 0, 1):
        return None
    is_turned = axis in (-1, 1)
    rows, depth = integers.shape[::-1] if is_turned else integers.shape
    block = min(depth & -depth, BLOCK_MAX)
    shapes = {each.shape for each in (scales, zeros) if each is not None}
    if block < BLOCK_MIN or shapes != {(rows,)}:
        return None
    bits, is_signed = INTEGERS[integers.dtype]
    form = BlockForm(rows, depth, bits, block, is_signed)
    if zeros is not None:
        zeros = _bytes_by_row(reshaped(zeros, (rows, 1)), bits, is_turned=False)
    elif form.middle:
        zeros = Fill(np.zeros((), np.uint8), (rows, 1))
    blocks = Blocks(
        form,
        _bytes_by_row(integers, bits, is_turned=is_turned),
        _scales(scales, (rows, 1), zeros),
        zeros,
        "exact",
    )
    return _weights(blocks, dtype, is_turned=is_turned)


def _zeros(form: BlockForm, zeros: Constant | None, *, is_turned: bool) -> Constant | None:
    """Return zero points as bytes; a tensor without them has zeros."""
    if zeros is not None:
        return _bytes_by_row(zeros, form.bits, is_turned=is_turned)
    if form.middle == 0:
        return None
    return Fill(np.zeros((), np.uint8), (form.rows, form.zero_bytes))


def _turned(scales: Constant) -> Constant:
    def compute() -> Array:
        return np.ascontiguousarray(scales.array().T)

    return Derived(scales.dtype, scales.shape[::-1], compute, (scales,), "turned")


def _bytes_by_row(integers: Constant, bits: int, *, is_turned: bool) -> Constant:
    """Return the bytes of a matrix's rows, or of its columns, each in whole bytes.

    They are the file's own where rows of it are whole bytes.
    """
    stored = _stored_bytes(integers, bits)
    rows, columns = integers.shape
    if not is_turned and columns * bits % 8 == 0:
        return reshaped(stored, (rows, columns * bits // 8))
    outer, inner = (columns, rows) if is_turned else (rows, columns)
    shape = outer, -(-inner * bits // 8)
    compute = partial(_repacked, stored, integers.shape, bits, is_turned)
    return Derived(DType.UINT8, shape, compute, (stored,), ("repacked", bits, is_turned))


def _repacked(
    stored: Constant,
    shape: tuple[int, ...],
    bits: int,
    is_turned: bool,  # noqa: FBT001
) -> Array:
    """Pack columns instead of rows, or each row to whole bytes; eight rows or more at a time."""
    rows, columns = shape
    outer, inner = (columns, rows) if is_turned else (rows, columns)
    found = np.empty((outer, -(-inner * bits // 8)), np.uint8)
    step = max((1 << 18) // max(columns, 1) // 8 * 8, 8)
    for start in range(0, rows, step):
        count = min(step, rows - start)
        first, elements = start * columns * bits // 8, count * columns
        raw = _bytes_at(stored, first, -(-elements * bits // 8))
        codes = unpacked(raw, bits)[:elements].reshape(count, columns)
        if is_turned:
            part = packed(codes, bits)
            place = start * bits // 8
            found[:, place : place + len(part)] = part.T
        else:
            found[start : start + count] = packed(codes.T, bits).T
    return found


def _bytes_at(stored: Constant, first: int, count: int) -> Bytes:
    """Return some bytes; those of a file are read, because its pages would stay resident."""
    if not isinstance(stored, Mapped):
        return stored.array().view(np.uint8).reshape(-1)[first : first + count]
    room = np.empty(count, np.uint8)
    stored.file.read_into(stored.offset_bytes + first, room.data)
    return room


def _stored_bytes(integers: Constant, bits: int) -> Constant:
    """Return the bytes of a tensor as a file has them: packed, without a shape."""
    count = element_count(integers.shape)
    if bits == 8:
        if isinstance(integers, Mapped):
            return replace(integers, dtype=DType.UINT8, shape=(count,))
        if isinstance(integers, Inline):
            return Inline(np.ascontiguousarray(integers.value).view(np.uint8).reshape(-1))
    elif isinstance(integers, Derived) and integers.recipe == "packed":
        return integers.sources[0]
    if isinstance(integers, Inline):
        return Inline(_packed(integers, bits))
    compute = partial(_packed, integers, bits)
    return Derived(DType.UINT8, (-(-count * bits // 8),), compute, (integers,), "bytes")


def _packed(integers: Constant, bits: int) -> Array:
    codes = np.ascontiguousarray(integers.array()).view(np.uint8).reshape(-1)
    return packed(codes, bits)
