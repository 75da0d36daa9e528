"""Memory shared with devices: dma-bufs and the kernel calls about them.

A dma-buf of the exporters listed here keeps its size and its pages, which are ordinary memory, as
long as it is open anywhere. Each access by the processor lies between two calls that make its
caches and the device's coherent.
"""

import fcntl
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress

EXPORTERS = frozenset({"udmabuf", "system_heap"})
"""Exporters whose memory stays while it is mapped, whatever happens to the device."""
UDMABUF, SYSTEM_HEAP = "/dev/udmabuf", "/dev/dma_heap/system"
RETRIES_MAX = 1000

READ, WRITE, END = 1, 2, 4
_SYNC = 0x40086200  # DMA_BUF_IOCTL_SYNC: u64 of flags
_CREATE = 0x40187542  # UDMABUF_CREATE: u32 memfd, u32 flags, u64 offset, u64 size
_ALLOCATE = 0xC0184800  # DMA_HEAP_IOCTL_ALLOC: u64 size, u32 file, u32 its flags, u64 flags
_CLOSE_ON_EXEC = 1


class Kernel:
    """Kernel calls, in a class that tests can replace."""

    def information(self, file: int) -> str:
        """Return the text in `/proc` about a descriptor."""
        with open(f"/proc/self/fdinfo/{file}", encoding="ascii", errors="replace") as opened:
            return opened.read()

    def size_bytes(self, file: int) -> int:
        """Return the size of a dma-buf."""
        return os.lseek(file, 0, os.SEEK_END)

    def ioctl(self, file: int, request: int, argument: bytearray) -> int:
        """Call `ioctl`, which may write to `argument`."""
        return int(fcntl.ioctl(file, request, argument))

    def has(self, path: str) -> bool:
        """Whether a device exists and this process may use it."""
        return os.access(path, os.R_OK | os.W_OK)

    def open(self, path: str) -> int:
        """Open a device."""
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def map(self, file: int, size_bytes: int, protection: int, offset: int) -> mmap.mmap:
        """Map a file shared."""
        return mmap.mmap(file, size_bytes, mmap.MAP_SHARED, protection, offset=offset)


KERNEL = Kernel()


def is_dma_buf(file: int, kernel: Kernel) -> bool:
    """Whether a descriptor is a dma-buf of one of `EXPORTERS`.

    Only the first `exp_name` counts: later lines may be part of a name that a client chose.

    Raises:
        OSError: The kernel gives no information.
    """
    rows = (line.partition(":") for line in kernel.information(file).splitlines())
    exporters = (value.strip() for name, _, value in rows if name == "exp_name")
    return next(exporters, None) in EXPORTERS


@contextmanager
def synced(file: int, flags: int, kernel: Kernel) -> Iterator[None]:
    """Bracket an access of the processor to a mapped dma-buf, for `READ` or `WRITE`.

    Raises:
        OSError: The kernel refuses, or stays too busy.
    """
    _sync(file, flags, kernel)
    try:
        yield
    finally:
        _sync(file, flags | END, kernel)


def _sync(file: int, flags: int, kernel: Kernel) -> None:
    for _ in range(RETRIES_MAX):
        with suppress(InterruptedError, BlockingIOError):
            kernel.ioctl(file, _SYNC, bytearray(struct.pack("<Q", flags)))
            return
    raise BlockingIOError(f"A dma-buf is still busy after {RETRIES_MAX} attempts.")


def has_allocator(kernel: Kernel) -> bool:
    """Whether this process can allocate dma-bufs."""
    return any(kernel.has(path) for path in (UDMABUF, SYSTEM_HEAP))


def allocate(size_bytes: int, kernel: Kernel) -> int | None:
    """Allocate a dma-buf of whole pages; None if no device allocates any.

    Raises:
        OSError: There is not enough memory.
    """
    if kernel.has(UDMABUF):
        with _opened(kernel, UDMABUF) as device, _memory(size_bytes) as memory:
            fields = struct.pack("<IIQQ", memory, _CLOSE_ON_EXEC, 0, size_bytes)
            return kernel.ioctl(device, _CREATE, bytearray(fields))
    if kernel.has(SYSTEM_HEAP):
        with _opened(kernel, SYSTEM_HEAP) as device:
            asked = bytearray(struct.pack("<QIIQ", size_bytes, 0, os.O_RDWR | os.O_CLOEXEC, 0))
            kernel.ioctl(device, _ALLOCATE, asked)
            return int.from_bytes(asked[8:12], "little")
    return None


@contextmanager
def _opened(kernel: Kernel, path: str) -> Iterator[int]:
    file = kernel.open(path)
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def _memory(size_bytes: int) -> Iterator[int]:
    """Open a memfd that udmabuf accepts: sealed against shrinking, writable."""
    file = os.memfd_create("tightship dma-buf", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(file, size_bytes)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        yield file
    finally:
        os.close(file)
