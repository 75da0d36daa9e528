"""Element types of ONNX, and the packing of small elements in bytes."""

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from tightship.graph import DType, element_count
from tightship.graph.constant import Array

DTYPES: dict[int, DType] = {
    getattr(TensorProto, name): dtype
    for name, dtype in {
        "FLOAT": DType.FLOAT32,
        "UINT8": DType.UINT8,
        "INT8": DType.INT8,
        "UINT16": DType.UINT16,
        "INT16": DType.INT16,
        "INT32": DType.INT32,
        "INT64": DType.INT64,
        "STRING": DType.STRING,
        "BOOL": DType.BOOL,
        "FLOAT16": DType.FLOAT16,
        "DOUBLE": DType.FLOAT64,
        "UINT32": DType.UINT32,
        "UINT64": DType.UINT64,
        "COMPLEX64": DType.COMPLEX64,
        "COMPLEX128": DType.COMPLEX128,
        "BFLOAT16": DType.BFLOAT16,
        "FLOAT8E4M3FN": DType.FLOAT8E4M3FN,
        "FLOAT8E4M3FNUZ": DType.FLOAT8E4M3FNUZ,
        "FLOAT8E5M2": DType.FLOAT8E5M2,
        "FLOAT8E5M2FNUZ": DType.FLOAT8E5M2FNUZ,
        "FLOAT8E8M0": DType.FLOAT8E8M0FNU,
        "FLOAT4E2M1": DType.FLOAT4E2M1FN,
        "FLOAT6E2M3": DType.FLOAT6E2M3FN,
        "FLOAT6E3M2": DType.FLOAT6E3M2FN,
        "UINT4": DType.UINT4,
        "INT4": DType.INT4,
        "UINT2": DType.UINT2,
        "INT2": DType.INT2,
    }.items()
    if hasattr(TensorProto, name)
}
"""Types by their number in `TensorProto.DataType`, if the installed onnx has them."""

NUMBERS: dict[DType, int] = {dtype: number for number, dtype in DTYPES.items()}

_BITS: dict[DType, int] = {
    DType.FLOAT4E2M1FN: 4,
    DType.UINT4: 4,
    DType.INT4: 4,
    DType.UINT2: 2,
    DType.INT2: 2,
    DType.FLOAT6E2M3FN: 6,
    DType.FLOAT6E3M2FN: 6,
}


def is_packed(dtype: DType) -> bool:
    """Whether elements take less than a byte in a file."""
    return dtype in _BITS


def packed_bytes(dtype: DType, shape: tuple[int, ...]) -> int:
    """Return the bytes that the elements take in a file: whole bytes, the last one padded."""
    bits = _BITS.get(dtype)
    count = element_count(shape)
    return count * dtype.itemsize if bits is None else -(-count * bits // 8)


def unpack(raw: NDArray[np.uint8], dtype: DType, shape: tuple[int, ...]) -> Array:
    """Return elements from their `packed_bytes(dtype, shape)` bytes in a file.

    The result is a view of `raw` unless elements take less than a byte or are bools.
    """
    if dtype is DType.BOOL:
        flags: Array = (raw != 0).reshape(shape)
        return flags
    if not is_packed(dtype):
        return raw.view(dtype.numpy).reshape(shape)
    bits, count = _BITS[dtype], element_count(shape)
    if bits == 6:
        planes = np.unpackbits(raw, bitorder="little")[: count * bits].reshape(count, bits)
        codes = np.packbits(planes, axis=1, bitorder="little").reshape(count)
    else:
        lanes = 8 // bits
        codes = np.empty((raw.size, lanes), np.uint8)
        for lane in range(lanes):
            codes[:, lane] = raw >> (bits * lane) & (1 << bits) - 1
    return codes.reshape(-1)[:count].view(dtype.numpy).reshape(shape)
