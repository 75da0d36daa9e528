"""Element types, shapes, and their sizes."""

import enum
import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from tightship.errors import GraphError

Dimension = int | str | None
"""Known length, symbol, or None for an unknown length."""

Shape = tuple[Dimension, ...]
"""Lengths of a value, outermost first."""


class UnboundLengthError(Exception):
    """A length was asked for its value after its trace was sealed, with no values bound."""


class DType(enum.Enum):
    """Element type, named as by NumPy and ml_dtypes.

    Sub-byte types take one byte an element, as they do in an array.
    """

    FLOAT32 = "float32"
    FLOAT64 = "float64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    BOOL = "bool"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"
    STRING = "string"
    FLOAT8E4M3FN = "float8_e4m3fn"
    FLOAT8E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8E5M2 = "float8_e5m2"
    FLOAT8E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT8E8M0FNU = "float8_e8m0fnu"
    FLOAT4E2M1FN = "float4_e2m1fn"
    FLOAT6E2M3FN = "float6_e2m3fn"
    FLOAT6E3M2FN = "float6_e3m2fn"
    UINT4 = "uint4"
    INT4 = "int4"
    UINT2 = "uint2"
    INT2 = "int2"

    __hash__ = object.__hash__  # that of Enum runs in Python, for each look-up

    @functools.cached_property
    def numpy(self) -> np.dtype[np.generic]:
        """NumPy dtype of an array of this type; strings are Python objects."""
        found: np.dtype[np.generic]
        if self is DType.STRING:
            return np.dtype(object)
        try:
            found = np.dtype(self.value)
        except TypeError:
            import ml_dtypes

            found = np.dtype(getattr(ml_dtypes, self.value))
        return found

    @functools.cached_property
    def itemsize(self) -> int:
        """Bytes of an element in an array; 0 for strings, whose bytes lie elsewhere."""
        return 0 if self is DType.STRING else self.numpy.itemsize

    @staticmethod
    def of(dtype: DTypeLike) -> "DType":
        """Return the type of a NumPy dtype.

        Raises:
            GraphError: No ONNX element type matches.
        """
        return _element_type(np.dtype(dtype))


@functools.cache
def _element_type(dtype: np.dtype[np.generic]) -> DType:
    if dtype.name == "object" or dtype.name.startswith(("str", "bytes")):
        return DType.STRING
    try:
        return DType(dtype.name)
    except ValueError:
        raise GraphError(f"NumPy dtype `{dtype.name}` has no ONNX element type.") from None


def agrees(lengths: Sequence[int], declared: Shape | None) -> bool:
    """Whether a value of the `declared` shape may have these lengths.

    Their number, if it is known, and the known ones must match.
    """
    return declared is None or (
        len(lengths) == len(declared)
        and all(
            length == wanted
            for length, wanted in zip(lengths, declared, strict=True)
            if isinstance(wanted, int)
        )
    )


def element_count(shape: Sequence[int]) -> int:
    """Return the number of elements of a static shape; 1 for a scalar."""
    return math.prod(shape)


def size_bytes(dtype: DType, shape: Sequence[int]) -> int:
    """Return the bytes of a dense array of elements of `dtype`, with the lengths `shape`."""
    return element_count(shape) * dtype.itemsize
