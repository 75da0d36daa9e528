"""Constants into the layouts their kernels want, a piece at a time."""

import numpy as np
from numpy.typing import NDArray

from tightship._core import MemoryDesc, onednn_reorder
from tightship.engine.lower.affine import Scaled, rows
from tightship.engine.program import PackedWeight
from tightship.graph import Constant, Fill, Inline, Mapped

PIECE_BYTES = 1 << 20
"""About how much of a constant is held besides its packed copy."""
BLOCK = 192
"""A multiple of every block that a layout cuts an axis into (16, 32, 48, 64)."""


def pack(weight: PackedWeight, room: NDArray[np.uint8]) -> None:
    """Write a constant into its place among the weights.

    Only about `PIECE_BYTES` of it are held besides, unless it must be computed whole; pages
    of its file are given back as they are used.

    Args:
        weight: What to pack, and how.
        room: Its bytes, `weight.size_bytes` of them.
    """
    constant = _in_rows(weight.constant)
    if weight.source is None or weight.desc is None:
        _copy(constant, room)
    elif weight.desc == weight.source and weight.desc.is_plain:
        _copy(constant, room)
    else:
        _reorder(weight, weight.source, weight.desc, constant, room)
    weight.constant.release()


def _in_rows(constant: Constant) -> Constant:
    """The constant, computed now if its rows cannot be had one by one."""
    if isinstance(constant, (Fill, Inline, Mapped)):
        return constant
    if isinstance(constant, Scaled) and isinstance(constant.source, (Fill, Inline, Mapped)):
        return Scaled(constant.source, Inline(constant.factor.array()))
    return Inline(constant.array())


def _row_count(constant: Constant, unit: int) -> int:
    """Rows of about a piece, a multiple of `BLOCK` units."""
    row_bytes = max(int(np.prod(constant.shape[1:])) * constant.dtype.itemsize * unit, 1)
    return max(PIECE_BYTES // row_bytes // BLOCK, 1) * BLOCK * unit


def _copy(constant: Constant, room: NDArray[np.uint8]) -> None:
    target = room.view(constant.dtype.numpy).reshape(constant.shape)
    if not constant.shape:
        target[...] = constant.array()
        return
    step = _row_count(constant, 1)
    for start in range(0, constant.shape[0], step):
        stop = min(start + step, constant.shape[0])
        target[start:stop] = rows(constant, start, stop)
        constant.release()


def _reorder(
    weight: PackedWeight, source: MemoryDesc, desc: MemoryDesc, constant: Constant,
    room: NDArray[np.uint8],
) -> None:  # fmt: skip
    """Reorder along the axis whose steps are largest in the constant's own bytes."""
    dims, strides = source.dims, source.strides
    axis = max(range(len(dims)), key=lambda a: (strides[a], dims[a] > 1, -a))
    unit = max(constant.shape[0] // dims[axis], 1)
    step = _row_count(constant, unit) // unit
    address = room.ctypes.data
    for start in range(0, dims[axis], step):
        stop = min(start + step, dims[axis])
        piece_rows = rows(constant, start * unit, stop * unit)
        piece = np.ascontiguousarray(piece_rows, constant.dtype.numpy)
        piece_dims = [stop - start if a == axis else d for a, d in enumerate(dims)]
        offsets = [start if a == axis else 0 for a in range(len(dims))]
        target = desc.part(piece_dims, offsets)
        onednn_reorder(
            MemoryDesc(piece_dims, "float32", strides), piece.ctypes.data, target, address
        )
        constant.release()
    assert weight.size_bytes == desc.size_bytes
