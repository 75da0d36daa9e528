"""NumPy's BLAS, which computes products where oneDNN has no kernels: its buffer and its threads.

OpenBLAS has one number of threads for the whole process, by default that of all processors, and
ends the process if it cannot reserve a buffer.
"""

import ctypes
import mmap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

from tightship.engine.plan.footprint import BLAS_BYTES
from tightship.errors import OutOfMemoryError

SIDE = 64
"""Rows and columns of a product that is large enough for the buffer."""
LIBRARIES = "../numpy.libs/libscipy_openblas*.so"
"""Path of OpenBLAS in a wheel of NumPy, from NumPy's folder."""


@cache
def reserve_blas_buffer() -> None:
    """Have NumPy's BLAS reserve its buffer, which all later products of this process use.

    The same number of bytes is reserved and given back first. A thread whose product runs beside
    another's takes a further buffer, unasked.

    Raises:
        OutOfMemoryError: The system refuses; the next call tries again.
    """
    try:
        mmap.mmap(-1, BLAS_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError as error:
        raise OutOfMemoryError(
            f"The system refuses {BLAS_BYTES} bytes for the buffer of NumPy's BLAS, which computes "
            "products of computed matrices without AVX-512. Free some memory, or raise the "
            "process's limits.",
            requested_bytes=BLAS_BYTES,
        ) from error
    square = np.ones((SIDE, SIDE), np.float32)
    np.dot(square, square)
    thread_limit()  # opens the library now, and not in a run, when memory may be short


class ThreadLimit:
    """Limit on the threads of OpenBLAS while some runs need one; the user's number comes back."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """Use an OpenBLAS as wheels of NumPy have it.

        Raises:
            AttributeError: It has other names.
        """
        self._get = library.scipy_openblas_get_num_threads64_
        self._set = library.scipy_openblas_set_num_threads64_
        self._lock = threading.Lock()
        self._counts: list[int] = []
        self._users = 0

    @contextmanager
    def at_most(self, count: int) -> Iterator[None]:
        """Compute with at most `count` threads; the least count of all runs holds meanwhile."""
        with self._lock:
            if not self._counts:
                self._users = self._get()
            self._counts.append(count)
            self._apply()
        try:
            yield
        finally:
            with self._lock:
                self._counts.remove(count)
                self._apply()

    def _apply(self) -> None:
        self._set(min([self._users, *self._counts]))


@cache
def thread_limit() -> ThreadLimit | None:
    """Return the limit of NumPy's OpenBLAS; None where NumPy has another BLAS, which is left."""
    try:
        (path,) = Path(np.__file__).parent.glob(LIBRARIES)
        return ThreadLimit(ctypes.CDLL(str(path)))
    except (AttributeError, OSError, ValueError):
        return None
