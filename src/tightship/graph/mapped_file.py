"""A file whose bytes are read where they are."""

import mmap
import os
import weakref

from tightship.errors import FormatError


class MappedFile:
    """A file mapped read-only; its pages come in as they are read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self._map: mmap.mmap | memoryview | bytes = b""
        self._fd: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._fd)
        self.size_bytes = os.fstat(self._fd).st_size
        if self.size_bytes:
            self._map = mmap.mmap(self._fd, 0, access=mmap.ACCESS_READ)

    @classmethod
    def of_bytes(cls, data: bytes | memoryview, path: str | os.PathLike[str]) -> "MappedFile":
        """A file whose bytes are in memory already; `path` is what messages call it."""
        file = cls.__new__(cls)
        file.path, file._map, file.size_bytes, file._fd = path, data, len(data), None
        return file

    def bytes_at(self, offset: int, size: int) -> memoryview:
        """The bytes `[offset, offset + size)`, not copied.

        Raises:
            FormatError: The range leaves the file.
        """
        if offset < 0 or size < 0 or offset + size > self.size_bytes:
            raise FormatError(
                f"`{self.path}` has {self.size_bytes} bytes, but a tensor needs bytes "
                f"[{offset}, {offset + size})."
            )
        return memoryview(self._map)[offset : offset + size]

    def read_into(self, offset: int, room: memoryview) -> None:
        """Fill `room` with the bytes from `offset` on; no page of the mapping comes in.

        Raises:
            FormatError: The file ends before.
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

    def release(self) -> None:
        """Drop all resident pages; they are read again when touched.

        All, because reading one page brings in its neighbours, dropped or not.
        """
        if isinstance(self._map, mmap.mmap):
            self._map.madvise(mmap.MADV_DONTNEED)
