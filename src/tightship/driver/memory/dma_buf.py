"""Memory that a device may use as well: dma-bufs, and the calls of the kernel about them.

A dma-buf keeps its size, and its pages stay, as long as anybody has it: those of the exporters
that are listed here, which are of ordinary memory. What the processor reads or writes there lies
between two calls, so that caches of both sides agree.
"""

import fcntl
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress

EXPORTERS = frozenset({"udmabuf", "system_heap"})
"""Whose memory no device can take away while it is mapped."""
UDMABUF, SYSTEM_HEAP = "/dev/udmabuf", "/dev/dma_heap/system"
RETRIES_MAX = 1000

READ, WRITE, END = 1, 2, 4
_SYNC = 0x40086200  # DMA_BUF_IOCTL_SYNC: u64 of flags
_CREATE = 0x40187542  # UDMABUF_CREATE: u32 memfd, u32 flags, u64 offset, u64 size
_ALLOCATE = 0xC0184800  # DMA_HEAP_IOCTL_ALLOC: u64 size, u32 file, u32 its flags, u64 flags
_CLOSE_ON_EXEC = 1


class Kernel:
    """The calls, in one place."""

    def information(self, file: int) -> str:
        """What `/proc` says of a descriptor."""
        with open(f"/proc/self/fdinfo/{file}", encoding="ascii", errors="replace") as opened:
            return opened.read()

    def size_bytes(self, file: int) -> int:
        """Of a dma-buf."""
        return os.lseek(file, 0, os.SEEK_END)

    def ioctl(self, file: int, request: int, argument: bytearray) -> int:
        """The call of that name, which may write to its argument."""
        return int(fcntl.ioctl(file, request, argument))

    def has(self, path: str) -> bool:
        """Whether there is such a device, for this process to use."""
        return os.access(path, os.R_OK | os.W_OK)

    def open(self, path: str) -> int:
        """A device."""
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def map(self, file: int, size_bytes: int, protection: int, offset: int) -> mmap.mmap:
        """Memory that is shared with all who have the file."""
        return mmap.mmap(file, size_bytes, mmap.MAP_SHARED, protection, offset=offset)


KERNEL = Kernel()


def is_dma_buf(file: int, kernel: Kernel) -> bool:
    """Whether a descriptor is a dma-buf of one of `EXPORTERS`.

    The kernel says the exporter first; what comes after may be in a name that a client gave.

    Raises:
        OSError: The kernel does not say.
    """
    rows = (line.partition(":") for line in kernel.information(file).splitlines())
    exporters = (value.strip() for name, _, value in rows if name == "exp_name")
    return next(exporters, None) in EXPORTERS


@contextmanager
def synced(file: int, flags: int, kernel: Kernel) -> Iterator[None]:
    """Within it the processor reads (`READ`), or writes (`WRITE`), what is mapped of a dma-buf.

    Raises:
        OSError: The kernel refuses; also where it is too busy for long.
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
    raise BlockingIOError("A dma-buf stays busy.")


def has_allocator(kernel: Kernel) -> bool:
    """Whether this process can have dma-bufs made."""
    return any(kernel.has(path) for path in (UDMABUF, SYSTEM_HEAP))


def allocate(size_bytes: int, kernel: Kernel) -> int | None:
    """A new dma-buf of so many bytes, of whole pages; None where no device makes any.

    Raises:
        OSError: There is no room for it.
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
    """Memory as udmabuf wants it: it cannot become shorter, and may be written."""
    file = os.memfd_create("tightship dma-buf", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(file, size_bytes)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        yield file
    finally:
        os.close(file)
