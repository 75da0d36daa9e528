"""The buffer of NumPy's BLAS, reserved before a run needs it."""

import mmap
from functools import cache

import numpy as np

from tightship.engine.plan.footprint import BLAS_BYTES
from tightship.errors import OutOfMemoryError

SIDE = 64
"""Rows and columns of a product that is large enough for the buffer."""


@cache
def reserve_blas_buffer() -> None:
    """Have NumPy's BLAS reserve its buffer, which all later products of this process use.

    OpenBLAS ends the process if it cannot, so the same number of bytes is reserved and given back
    first. A thread whose product runs beside another's takes a further buffer, unasked.

    Raises:
        OutOfMemoryError: The system refuses; the next call tries again.
    """
    try:
        mmap.mmap(-1, BLAS_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError as error:
        raise OutOfMemoryError(
            f"The system refuses {BLAS_BYTES} bytes for the buffer of NumPy's BLAS, which computes "
            "products on processors without AVX-512. Free some memory, or raise the process's "
            "limits.",
            requested_bytes=BLAS_BYTES,
        ) from error
    square = np.ones((SIDE, SIDE), np.float32)
    np.dot(square, square)
