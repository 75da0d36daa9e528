"""A client's file as memory for inputs and outputs."""

import math
import mmap
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from tightship.driver.client.segment import Placed
from tightship.driver.client.session import Session
from tightship.driver.protocol.messages import RegisterPool, UnregisterPool
from tightship.driver.protocol.replies import PoolRegistered
from tightship.driver.types.model import DataLocation
from tightship.driver.types.pools import READ, WRITE, PoolKind, PoolMode
from tightship.public_calls import public_methods


@public_methods
class FilePool:
    """A file, registered as a pool and mapped here.

    The driver maps it as well (`sealed`: nobody can shorten it), or reads and writes it by system
    calls (`copy`), or has a process map it that may die of it (`isolated`). In both of the latter,
    whoever shortens it makes an execution fail, and nothing else there. Here, an array beyond the
    end of a file that was shortened must not be touched.

    Attributes:
        pool: Its number.
    """

    def __init__(self, session: Session, file: int, mode: PoolMode, *, is_writable: bool) -> None:
        """Register a whole file; the descriptor stays the caller's.

        Raises:
            DriverError: INVALID_ARGUMENT: it is no regular file, not open as needed, or not sealed.
            ValueError: It is empty.
        """
        self._session = session
        protection = READ | (WRITE if is_writable else 0)
        access = mmap.PROT_READ | (mmap.PROT_WRITE if is_writable else 0)
        self._mapping: mmap.mmap | None = mmap.mmap(file, 0, mmap.MAP_SHARED, access)
        call = RegisterPool(PoolKind.MMAP_FD, len(self._mapping), protection, 0, mode=mode)
        self.pool = session.expect(PoolRegistered, call, (file,)).pool

    def at(self, offset_bytes: int, shape: Sequence[int], dtype: DTypeLike) -> Placed:
        """The array that lies at an offset.

        Raises:
            ValueError: The file ends before the array, or the pool is closed.
        """
        if self._mapping is None:
            raise ValueError("The pool is closed.")
        element = np.dtype(dtype)
        count = math.prod(shape)
        array = np.frombuffer(self._mapping, element, count, offset_bytes).reshape(shape)
        return Placed(array, self.pool, DataLocation(0, offset_bytes, array.nbytes))

    def close(self) -> None:
        """Let the driver forget it; arrays in it stay valid here. Harmless when repeated."""
        if self._mapping is not None:
            self._mapping = None
            self._session.forget(UnregisterPool(self.pool))

    def __enter__(self) -> "FilePool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
