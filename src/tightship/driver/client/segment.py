"""Memory of a client that the driver uses in place."""

import math
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tightship.driver.client.session import Released, Session
from tightship.driver.memory.descriptor import new_segment
from tightship.driver.protocol.messages import RegisterPool, UnregisterPool
from tightship.driver.protocol.replies import PoolRegistered
from tightship.driver.types.model import DataLocation
from tightship.driver.types.pools import READ, WRITE, PoolKind
from tightship.driver.types.status import REQUEST_ALIGNMENT_BYTES
from tightship.errors import InputError
from tightship.public_calls import public_methods

Array = NDArray[Any]


SIZE_BYTES_MAX = 2**63 - 1


def aligned(size_bytes: int) -> int:
    """Return the bytes that a value of this size occupies in a segment."""
    return -(-size_bytes // REQUEST_ALIGNMENT_BYTES) * REQUEST_ALIGNMENT_BYTES


def checked_size(size_bytes: int) -> int:
    """Check and return a size of memory.

    Raises:
        InputError: The size is below 1, or above that of any file.
    """
    if not 1 <= size_bytes <= SIZE_BYTES_MAX:
        raise InputError(f"The size is {size_bytes} bytes; it must be 1 to {SIZE_BYTES_MAX}.")
    return size_bytes


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Array in a segment, used in place by both sides.

    Attributes:
        pool: Identifier of the segment's pool.
    """

    array: Array
    pool: int
    location: DataLocation


@public_methods
class Segment(Released):
    """Sealed memfd registered as a pool; arrays are placed in it one after another.

    Attributes:
        pool: Identifier of the pool.
        size_bytes: Size of the segment.
    """

    def __init__(self, session: Session, size_bytes: int) -> None:
        file = new_segment(checked_size(size_bytes))
        try:
            call = RegisterPool(PoolKind.ASHMEM, size_bytes, READ | WRITE, 0)
            self._register(session, call, file)
        finally:
            os.close(file)

    def _register(self, session: Session, call: RegisterPool, file: int) -> None:
        """Map a file and register it as the pool; the descriptor may then be closed."""
        self.size_bytes = call.size_bytes
        self._used_bytes = 0
        self._mapping: mmap.mmap | None = mmap.mmap(file, call.size_bytes)
        self.pool = session.expect(PoolRegistered, call, (file,)).pool
        super().__init__(session, UnregisterPool(self.pool))

    def place(self, shape: Sequence[int], dtype: DTypeLike) -> Placed:
        """Place an array; it holds zeros, or what was there before `reset`.

        Args:
            shape: Lengths of the array.
            dtype: Type of its elements.

        Raises:
            ValueError: The segment is full, or closed.
        """
        element = np.dtype(dtype)
        start, count = self._used_bytes, math.prod(shape)
        stop = start + count * element.itemsize
        if self._mapping is None or stop > self.size_bytes:
            raise ValueError(f"Byte {stop} is not in an open segment of {self.size_bytes} bytes.")
        self._used_bytes = aligned(stop)
        array = np.frombuffer(self._mapping, element, count, start).reshape(shape)
        return Placed(array, self.pool, DataLocation(0, start, stop - start))

    def reset(self) -> None:
        """Place the next array at the beginning."""
        self._used_bytes = 0

    def close(self) -> None:
        """Release the pool; its arrays stay valid here. Harmless when repeated."""
        self._mapping = None
        super().close()


class Stage:
    """Segment that grows to the size of the largest request."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._segment: Segment | None = None

    def of(self, size_bytes: int) -> Segment:
        """Return the segment, empty and of at least `size_bytes`."""
        segment = self._segment
        if segment is None or segment.size_bytes < size_bytes:
            self.close()
            segment = self._segment = Segment(self._session, max(1, size_bytes))
        segment.reset()
        return segment

    def close(self) -> None:
        """Release the segment. Harmless when repeated."""
        if self._segment is not None:
            self._segment.close()
            self._segment = None
