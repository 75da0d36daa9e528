"""Layouts that lowering chooses by itself; all others are oneDNN's choice."""

from collections.abc import Sequence

from tightship._core import MemoryDesc, OneDnnError, onednn_cpu_isa
from tightship.engine.program.program import Operand
from tightship.graph import DType, size_bytes

AVX2 = 0x4
"""Bit of `onednn_cpu_isa` for AVX2."""
AVX512 = 0x20
"""Bit of `onednn_cpu_isa` for AVX-512."""
AMX = 0xE00
"""Bits of `onednn_cpu_isa` for tiles of bfloat16 and int8."""
BFLOAT16 = 0x80
"""Bit of `onednn_cpu_isa` for AVX-512's products of bfloat16."""
AVX512_VNNI = 0x40
"""Bit of `onednn_cpu_isa` for AVX-512's products of bytes."""
VNNI = 0x8 | AVX512_VNNI
"""Bits of `onednn_cpu_isa` for exact sums of products of bytes: with AVX2, with AVX-512."""
DESCRIBABLE = frozenset({DType.FLOAT32, DType.INT8, DType.UINT8})
"""Element types whose operands have an oneDNN layout."""


def row_major(shape: Sequence[int], dtype: DType = DType.FLOAT32) -> MemoryDesc:
    """Return the row-major layout of a shape; a scalar is one element."""
    return MemoryDesc(list(shape) or [1], dtype.value)


def channels_last(shape: Sequence[int], dtype: DType = DType.FLOAT32) -> MemoryDesc:
    """Return the row-major layout with axis 1 moved to the end; row-major up to rank 2."""
    if len(shape) < 3:
        return row_major(shape, dtype)
    last = dense_strides([shape[0], *shape[2:], shape[1]])
    return MemoryDesc(list(shape), dtype.value, [last[0], last[-1], *last[1:-1]])


def register_floats() -> int:
    """Return the floats in the widest register that oneDNN may use: 16 with AVX-512, else 8."""
    return 16 if onednn_cpu_isa() & AVX512 else 8


def sums_saturate() -> bool:
    """Whether convolutions of uint8 by int8 add two products in 16 bits, where large ones saturate.

    With int8 by int8, oneDNN halves the weights before, which rounds them.
    """
    return not onednn_cpu_isa() & VNNI


def faster_passes(*, narrow: bool) -> frozenset[str]:
    """Return the passes whose kernels are faster on this processor than those without them.

    Products of row-major pixels are with AVX-512, those of quantized pixels with VNNI; the
    library's tiles are faster than both.

    Args:
        narrow: Whether products round what they multiply to bfloat16.
    """
    isa = onednn_cpu_isa()
    if isa & AMX:
        return frozenset()
    pixels = {"multiply_pixels"} if isa & AVX512 and not narrow else set[str]()
    return frozenset(pixels | ({"multiply_quantized"} if isa & AVX512_VNNI else set()))


def multiplies_halves() -> bool:
    """Whether the processor multiplies bfloat16, with sums in float32."""
    return bool(onednn_cpu_isa() & BFLOAT16)


def blocked(shape: Sequence[int]) -> MemoryDesc:
    """Return channels in blocks of a register's width, padded, for one to three spatial axes."""
    axes = "Bcde"[: len(shape) - 1]
    return MemoryDesc.named(list(shape), "float32", f"a{axes}{register_floats()}b")


def seen_as(operand: Operand, desc: MemoryDesc) -> Operand | None:
    """Return the operand under `desc`, if that describes its bytes as they are."""
    if operand.desc is None:
        return None
    if operand.desc == desc:
        return operand
    if operand.desc.dims == desc.dims:
        return None
    try:
        same = operand.desc.reshaped(desc.dims) == desc
    except OneDnnError:
        return None
    return operand.under(desc) if same else None


def dense_strides(shape: Sequence[int]) -> list[int]:
    """Compute row-major strides, in elements."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * max(shape[axis], 1)
    return strides


def alike(operand: Operand, dtype: DType) -> MemoryDesc | None:
    """Return the operand's layout for elements of another type.

    Return None if oneDNN lacks the type, or the layout is blocked or has gaps.
    """
    desc = operand.desc
    if desc is None or dtype not in DESCRIBABLE or not desc.is_plain:
        return None
    if desc.size_bytes != size_bytes(operand.dtype, operand.shape) or not operand.shape:
        return None
    return MemoryDesc(desc.dims, dtype.value, desc.strides)
