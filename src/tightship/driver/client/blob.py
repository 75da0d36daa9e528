"""Memory of a client that a device may use too: hardware buffers of bytes."""

import mmap
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext

from tightship.driver.client.segment import Segment, checked_size
from tightship.driver.client.session import Session
from tightship.driver.memory.descriptor import new_segment
from tightship.driver.memory.dma_buf import KERNEL, READ, WRITE, allocate, is_dma_buf, synced
from tightship.driver.protocol.messages import RegisterPool
from tightship.driver.types import pools
from tightship.driver.types.pools import Image
from tightship.public_calls import public_methods

PIXEL_FORMAT_BLOB = 0x21


@public_methods
class Blob(Segment):
    """Segment in a hardware buffer: a dma-buf or a sealed memfd.

    This process must access arrays placed there within `access`.

    Attributes:
        file: Descriptor for a device; open until `close`.
        is_dma_buf: Whether a device can use it.
    """

    def __init__(self, session: Session, size_bytes: int, file: int | None = None) -> None:
        """Register the memory; arguments and errors as for `Client.blob`."""
        checked_size(size_bytes)
        self.file = _new(size_bytes) if file is None else os.dup(file)
        self._is_open = True
        self.is_dma_buf = is_dma_buf(self.file, KERNEL)
        image = Image(size_bytes, 1, 1, size_bytes, PIXEL_FORMAT_BLOB)
        protection = pools.READ | pools.WRITE
        call = RegisterPool(pools.PoolKind.BLOB, size_bytes, protection, 0, image=image)
        with ExitStack() as undone:
            undone.callback(os.close, self.file)
            self._register(session, call, self.file)
            undone.pop_all()

    @contextmanager
    def access(self, *, to_write: bool = False) -> Iterator[None]:
        """Bracket reads, or reads and writes, of the arrays by this process.

        Raises:
            OSError: The kernel refuses, or is too busy.
        """
        flags = READ | WRITE if to_write else READ
        with synced(self.file, flags, KERNEL) if self.is_dma_buf else nullcontext():
            yield

    def close(self) -> None:
        """Release the segment and close the descriptor. Harmless when repeated."""
        super().close()
        if self._is_open:
            self._is_open = False
            os.close(self.file)


def _new(size_bytes: int) -> int:
    made = allocate(-(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE, KERNEL)
    return new_segment(size_bytes) if made is None else made
