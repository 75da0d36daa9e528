"""Descriptors: inspection of received files, and sealed memory for clients and driver."""

import errno
import fcntl
import mmap
import os
import select
import stat
from dataclasses import replace

from tightship.available import available_bytes
from tightship.driver.memory.dma_buf import KERNEL, Kernel, is_dma_buf
from tightship.driver.memory.trusted import Trusted
from tightship.driver.types.attachment import Attachment, FenceState

SEALED_SIZE = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


def describe(file: int, trusted: Trusted, kernel: Kernel = KERNEL) -> Attachment:
    """Return the facts about a descriptor, which is also its handle.

    If the kernel gives none, as for a folder of a dead process, the file is marked unusable.
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
    """Whether pages come from a reserve that may be empty when one is touched."""
    return os.fstatvfs(file).f_bsize > mmap.PAGESIZE


def seals_of(file: int) -> int:
    """Return the seals of a descriptor; 0 for a file that cannot be sealed."""
    try:
        return fcntl.fcntl(file, fcntl.F_GET_SEALS)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF):
            raise
        return 0


def fence_state(file: int) -> FenceState:
    """Return the state of a pipe or socket: data signals it, an end without data is an error."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    happened = dict(poll.poll(0)).get(file, 0)
    if not happened:
        return FenceState.PENDING
    is_error = happened & (select.POLLHUP | select.POLLERR) and not happened & select.POLLIN
    return FenceState.ERROR if is_error else FenceState.SIGNALLED


def seal_content(file: int) -> None:
    """Seal size and contents of a memfd."""
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALED_SIZE | fcntl.F_SEAL_WRITE)


LARGE_BYTES = 64 << 20
"""Size from which memory is checked before allocation; an overcommitted system kills processes."""


def new_segment(size_bytes: int, content: bytes | None = None) -> int:
    """Create a memfd of fixed size; its contents, if given, are fixed as well.

    Raises:
        OSError: The system lacks the memory.
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
    """Write all bytes of `content`.

    Raises:
        OSError: There is no room for them.
    """
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]
