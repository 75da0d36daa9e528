"""Files of a client as memory for inputs and outputs."""

import math
import mmap
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from tightship.driver.client.segment import Placed
from tightship.driver.client.session import Released, Session
from tightship.driver.protocol.messages import RegisterPool, UnregisterPool
from tightship.driver.protocol.replies import PoolRegistered
from tightship.driver.types.model import DataLocation
from tightship.driver.types.pools import READ, WRITE, PoolKind, PoolMode
from tightship.public_calls import public_methods


@public_methods
class FilePool(Released):
    """File registered as a pool and mapped here.

    The driver maps it (SEALED: it cannot be shortened), reads and writes it by system calls (COPY),
    or maps it in a separate process (ISOLATED). In the last two modes, shortening the file only
    makes executions fail. This process must not touch an array beyond the end of a shortened file.

    Attributes:
        pool: Identifier of the pool.
    """

    def __init__(self, session: Session, file: int, mode: PoolMode, *, is_writable: bool) -> None:
        """Register a whole file; the descriptor stays the caller's.

        Raises:
            DriverError: INVALID_ARGUMENT: it is not a regular file, not open as needed, or not
                sealed.
            ValueError: It is empty.
        """
        protection = READ | (WRITE if is_writable else 0)
        access = mmap.PROT_READ | (mmap.PROT_WRITE if is_writable else 0)
        self._mapping: mmap.mmap | None = mmap.mmap(file, 0, mmap.MAP_SHARED, access)
        call = RegisterPool(PoolKind.MMAP_FD, len(self._mapping), protection, 0, mode=mode)
        self.pool = session.expect(PoolRegistered, call, (file,)).pool
        super().__init__(session, UnregisterPool(self.pool))

    def at(self, offset_bytes: int, shape: Sequence[int], dtype: DTypeLike) -> Placed:
        """Return the array at an offset.

        Args:
            offset_bytes: Offset in the file, in bytes.
            shape: Lengths of the array.
            dtype: Type of its elements.

        Raises:
            ValueError: The array exceeds the file, or the pool is closed.
        """
        if self._mapping is None:
            raise ValueError("The pool is closed.")
        element = np.dtype(dtype)
        count = math.prod(shape)
        array = np.frombuffer(self._mapping, element, count, offset_bytes).reshape(shape)
        return Placed(array, self.pool, DataLocation(0, offset_bytes, array.nbytes))

    def close(self) -> None:
        """Release the pool; its arrays stay valid here. Harmless when repeated."""
        self._mapping = None
        super().close()
