"""Bytes of pools by mode: mapped here, transferred by system calls, or by an isolated process."""

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.driver.memory import dma_buf
from tightship.driver.memory.dma_buf import KERNEL, Kernel, synced
from tightship.driver.memory.file_prober import FileProber, is_prompt
from tightship.driver.memory.isolated import Isolated
from tightship.driver.types.model import DataLocation
from tightship.driver.types.pools import DeviceMemory, Image, Pool, PoolMode, row_bytes
from tightship.driver.types.status import failure

PART_BYTES = 4 << 20
"""Most bytes of a file that one timed call transfers."""

Array = NDArray[Any]
Bytes = NDArray[np.uint8]


class Mappings:
    """Mappings of pools, made at their first use and kept until they are dropped."""

    def __init__(self, slow: FileProber, kernel: Kernel = KERNEL) -> None:
        """Create an empty table; `slow` reads files that may block, `kernel` handles dma-bufs."""
        self._slow = slow
        self._mappings: dict[int, mmap.mmap] = {}
        self._isolated = Isolated()
        self._kernel = kernel

    def map(self, pool: Pool) -> Bytes:
        """Return all bytes of a SEALED pool or a dma-buf, writable if its protection is.

        Bytes of a dma-buf may be accessed only within `_dma_buf`.

        Raises:
            DriverError: GENERAL_FAILURE: it cannot be mapped.
        """
        mapping = self._mappings.get(pool.identifier)
        if mapping is None:
            protection = mmap.PROT_READ | (mmap.PROT_WRITE if pool.is_writable else 0)
            size_bytes, offset = pool.extent.size_bytes, pool.extent.offset_bytes
            try:
                new = self._kernel.map(pool.handle, size_bytes, protection, offset)
            except (OSError, ValueError) as error:
                raise failure(f"A pool of {size_bytes} bytes cannot be mapped: {error}.") from None
            mapping = self._mappings.setdefault(pool.identifier, new)
        return np.frombuffer(mapping, np.uint8)

    def places(self) -> dict[int, tuple[int, int]]:
        """Return the first address and the end address of each mapped pool."""
        found = {}
        for number, mapping in self._mappings.copy().items():
            start = np.frombuffer(mapping, np.uint8).ctypes.data
            found[number] = start, start + len(mapping)
        return found

    def drop(self, pool: Pool) -> None:
        """Close the file of a pool; its mapping ends with the last array on it."""
        self._mappings.pop(pool.identifier, None)
        if pool.mode is PoolMode.ISOLATED:
            self._isolated.drop(pool)
        self._slow.close_all((pool.handle,))

    def close(self) -> None:
        """End idle isolated processes."""
        self._isolated.close()

    def check(self, pool: Pool) -> None:
        """Map a pool now, if its mode maps it.

        Raises:
            DriverError: GENERAL_FAILURE: it cannot be mapped.
        """
        if pool.mode in {PoolMode.SEALED, DeviceMemory.DMA_BUF}:
            self.map(pool)
        elif pool.mode is PoolMode.ISOLATED:
            self._isolated.check(pool)

    def read(self, pool: Pool, start: int, size_bytes: int) -> Bytes:
        """Return bytes of a pool: a view if it is mapped, else a copy.

        Raises:
            DriverError: GENERAL_FAILURE: the file has become shorter, or cannot be read.
        """
        if pool.mode is PoolMode.SEALED:
            return self.map(pool)[start : start + size_bytes]
        data = np.empty(size_bytes, np.uint8)
        if pool.mode is PoolMode.ISOLATED:
            self._isolated.read(pool, start, data)
            return data
        if pool.mode is DeviceMemory.DMA_BUF:
            with self._dma_buf(pool, dma_buf.READ) as mapped:
                data[...] = mapped[start : start + size_bytes]
            return data
        done = 0
        while done < size_bytes:
            count = self._fetch(pool, start + done, data[done : done + PART_BYTES])
            if not count:
                raise failure("The file of a pool has become shorter than the pool.")
            done += count
        return data

    def _fetch(self, pool: Pool, start: int, room: Bytes) -> int:
        """Read what is in the page cache, or what arrives within the time limit."""
        begin = pool.extent.offset_bytes + start
        if is_prompt(pool.handle):
            return _transfer(self._slow, pool, partial(os.preadv, pool.handle, [room.data], begin))
        try:
            return os.preadv(pool.handle, [room.data], begin, os.RWF_NOWAIT)
        except OSError:  # not in memory, or its file system cannot tell
            pass
        own = np.empty(room.size, np.uint8)  # a call that was given up may still write to it
        count = _transfer(self._slow, pool, partial(os.preadv, pool.handle, [own.data], begin))
        room[:count] = own[:count]
        return count

    def write(self, pool: Pool, start: int, data: Bytes) -> None:
        """Write bytes to a pool.

        Raises:
            DriverError: GENERAL_FAILURE: the file cannot be written.
        """
        if pool.mode is PoolMode.SEALED:
            self.map(pool)[start : start + data.size] = data
            return
        if pool.mode is PoolMode.ISOLATED:
            self._isolated.write(pool, start, data)
            return
        if pool.mode is DeviceMemory.DMA_BUF:
            with self._dma_buf(pool, dma_buf.READ | dma_buf.WRITE) as mapped:
                mapped[start : start + data.size] = data
            return
        own = None  # a call that was given up may still read its memory, hence a copy
        if not is_prompt(pool.handle):
            own = np.empty(min(data.size, PART_BYTES), np.uint8)
        done = 0
        while done < data.size:
            part = data[done : done + PART_BYTES]
            if own is not None:
                own[: part.size] = part
                part = own[: part.size]
            begin = pool.extent.offset_bytes + start + done
            call = partial(os.pwritev, pool.handle, [part.data], begin)
            done += _transfer(self._slow, pool, call)

    @contextmanager
    def _dma_buf(self, pool: Pool, flags: int) -> Iterator[Bytes]:
        mapped = self.map(pool)
        try:
            with synced(pool.handle, flags, self._kernel):
                yield mapped
        except OSError as error:
            raise failure(f"A dma-buf cannot be used: {error}.") from None

    def value(self, pool: Pool, location: DataLocation) -> Bytes:
        """Return the bytes of a location, or all pixels of an image; raises as `read`."""
        if pool.image is None:
            return self.read(pool, location.offset_bytes, location.length_bytes)
        return self.whole(pool)

    def whole(self, pool: Pool) -> Bytes:
        """Return the bytes of a value that fills a pool; raises as `read`."""
        data = self.read(pool, 0, pool.extent.size_bytes)
        if pool.image is None:
            return data
        return np.ascontiguousarray(_rows(data, pool.image)).reshape(-1)

    def store(self, pool: Pool, data: Bytes) -> None:
        """Write a value that fills a pool, except the padding of rows; raises as `write`."""
        if pool.image is None:
            self.write(pool, 0, data)
            return
        rows = data.reshape(-1, row_bytes(pool.image))
        if pool.mode is PoolMode.SEALED:
            _rows(self.map(pool), pool.image)[...] = rows
            return
        if pool.mode is DeviceMemory.DMA_BUF:
            with self._dma_buf(pool, dma_buf.READ | dma_buf.WRITE) as mapped:
                _rows(mapped, pool.image)[...] = rows
            return
        for index, row in enumerate(rows):
            self.write(pool, index * pool.image.row_stride_bytes, row)


def _rows(data: Bytes, image: Image) -> Bytes:
    """Return a view of an image's pixels, row by row."""
    count, stride = image.height * image.layers, image.row_stride_bytes
    return data[: count * stride].reshape(count, stride)[:, : row_bytes(image)]


def _transfer(slow: FileProber, pool: Pool, call: Callable[[], int]) -> int:
    try:
        return slow.answer(pool.handle, call)
    except OSError as error:
        raise failure(f"The file of a pool cannot be used: {error.strerror}.") from None
