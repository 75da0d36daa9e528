"""Files mapped read-only."""

import mmap
import os
import weakref

from tightship.errors import FormatError


class MappedFile:
    """File mapped read-only, whose pages are read on access.

    Attributes:
        path: Path of the file, or its name in messages.
        size_bytes: Size of the file.
        facts: Device, inode, size, and times of change of content and of inode in nanoseconds, when
            it was opened: files of equal facts have equal bytes. None for bytes in memory.
        is_run: Whether kernels read weights where the file is mapped, rather than copies of them.
    """

    facts: tuple[int, int, int, int, int] | None = None
    is_run = False

    def __init__(self, path: str | os.PathLike[str], *, is_run: bool = False) -> None:
        """Map a file; see the attributes.

        Raises:
            OSError: It cannot be opened.
        """
        self.path, self.is_run = path, is_run
        self._map: mmap.mmap | memoryview | bytes = b""
        self._fd: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._fd)
        found = os.fstat(self._fd)
        self.size_bytes = found.st_size
        self.facts = (
            found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        )  # fmt: skip
        if self.size_bytes:
            self._map = mmap.mmap(self._fd, 0, access=mmap.ACCESS_READ)

    @classmethod
    def of_bytes(cls, data: bytes | memoryview, path: str | os.PathLike[str]) -> "MappedFile":
        """Make a file of `data`, which stays in memory; messages call it `path`."""
        file = cls.__new__(cls)
        file.path, file._map, file.size_bytes, file._fd = path, data, len(data), None
        return file

    @property
    def is_mapped(self) -> bool:
        """Whether its bytes are in a file, not in memory as those of `of_bytes`."""
        return self._fd is not None

    def bytes_at(self, offset: int, size: int) -> memoryview:
        """Return the bytes `[offset, offset + size)` without a copy.

        Raises:
            FormatError: The range is outside the file.
        """
        if offset < 0 or size < 0 or offset + size > self.size_bytes:
            raise FormatError(
                f"`{self.path}` has {self.size_bytes} bytes, but a tensor needs bytes "
                f"[{offset}, {offset + size})."
            )
        return memoryview(self._map)[offset : offset + size]

    def read_into(self, offset: int, room: memoryview) -> None:
        """Read bytes from `offset` into `room`, without touching pages of the mapping.

        Raises:
            FormatError: The file ends too early.
        """
        if self._fd is None:
            room[:] = memoryview(self._map).cast("B")[offset : offset + len(room)]
            return
        while len(room):
            count = os.preadv(self._fd, [room], offset)
            if count == 0:
                raise FormatError(
                    f"`{self.path}` ends {len(room)} bytes early: it was cut while it was read."
                )
            offset, room = offset + count, room[count:]

    def forget(self) -> None:
        """Let go of bytes in memory, which are read no more; a mapping stays."""
        if not self.is_mapped:
            self._map = b""

    def release(self) -> None:
        """Drop all resident pages; they are read again when touched.

        It drops all, because reading one page brings in its neighbours.
        """
        if isinstance(self._map, mmap.mmap):
            self._map.madvise(mmap.MADV_DONTNEED)
