"""What the kernel says of a descriptor, and the files that clients and driver make."""

import errno
import fcntl
import mmap
import os
import select
import stat
from dataclasses import replace

from tightship.driver.memory.available import available_bytes
from tightship.driver.memory.dma_buf import KERNEL, Kernel, is_dma_buf
from tightship.driver.memory.trusted import Trusted
from tightship.driver.types.attachment import Attachment, FenceState

SEALED_SIZE = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


def describe(file: int, trusted: Trusted, kernel: Kernel = KERNEL) -> Attachment:
    """What the service must know of a descriptor, which is also its handle.

    One of which the kernel says nothing, as a folder of a dead process, is good for nothing.
    """
    try:
        return _described(file, trusted, kernel)
    except OSError:
        return Attachment(file, is_regular=False, is_readable=False, is_writable=False)


def _described(file: int, trusted: Trusted, kernel: Kernel) -> Attachment:
    found = os.fstat(file)
    flags = fcntl.fcntl(file, fcntl.F_GETFL)
    access = flags & os.O_ACCMODE
    is_open = not flags & os.O_PATH
    seals = seals_of(file)
    is_fence = is_open and (stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode))
    described = Attachment(
        file,
        found.st_size,
        (found.st_dev, found.st_ino),
        is_regular=stat.S_ISREG(found.st_mode),
        is_readable=is_open and access in (os.O_RDONLY, os.O_RDWR),
        is_writable=is_open and access in (os.O_WRONLY, os.O_RDWR),
        is_shrink_sealed=bool(seals & fcntl.F_SEAL_SHRINK) and not _has_huge_pages(file),
        is_write_sealed=bool(seals & fcntl.F_SEAL_WRITE),
        is_trusted=trusted.holds(file),
        fence=fence_state(file) if is_fence else None,
    )
    if seals or is_fence or not is_open or not is_dma_buf(file, kernel):
        return described
    size_bytes = kernel.size_bytes(file)
    return replace(
        described, size_bytes=size_bytes, is_regular=True, is_shrink_sealed=True, is_dma_buf=True
    )


def _has_huge_pages(file: int) -> bool:
    """Whether a file's pages are of a reserve that may be empty when one is touched."""
    return os.fstatvfs(file).f_bsize > mmap.PAGESIZE


def seals_of(file: int) -> int:
    """The seals of a descriptor; 0 for a file that can have none."""
    try:
        return fcntl.fcntl(file, fcntl.F_GET_SEALS)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF):
            raise
        return 0


def fence_state(file: int) -> FenceState:
    """Of a pipe or socket: something to read signals it, an end without that is an error."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    happened = dict(poll.poll(0)).get(file, 0)
    if not happened:
        return FenceState.PENDING
    is_error = happened & (select.POLLHUP | select.POLLERR) and not happened & select.POLLIN
    return FenceState.ERROR if is_error else FenceState.SIGNALLED


def seal_content(file: int) -> None:
    """Have neither the size nor the content of a memfd change any more."""
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALED_SIZE | fcntl.F_SEAL_WRITE)


LARGE_BYTES = 64 << 20
"""From here on memory is asked for only where it is left: the system would end processes for it."""


def new_segment(size_bytes: int, content: bytes | None = None) -> int:
    """A memfd whose size can never change; with a content, nor can that.

    Raises:
        OSError: The system has no room for it.
    """
    if size_bytes >= LARGE_BYTES and size_bytes > available_bytes():
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
    file = os.memfd_create("tightship", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.posix_fallocate(file, 0, size_bytes)
        if content is not None:
            write_all(file, content)
        seals = SEALED_SIZE if content is None else SEALED_SIZE | fcntl.F_SEAL_WRITE
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    except OSError:
        os.close(file)
        raise
    return file


def write_all(file: int, content: bytes) -> None:
    """Write all bytes.

    Raises:
        OSError: There is no room for them.
    """
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]
