"""Rows of idle sessions in files without names, from when a pool takes their pages.

A file is gone as soon as nothing refers to its rows, however the process ends.
"""

import errno
import os
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tightship.engine.state.cache_rows import CacheRows
from tightship.errors import CapacityError, InputError
from tightship.quantity import format_bytes
from tightship.safetensors import bytes_of

if TYPE_CHECKING:
    from tightship.model.session import Session
    from tightship.model.session_tokens import KeptTokens


class SpillSpace:
    """Files of spilled rows in one folder, of so many bytes in all.

    Attributes:
        max_bytes: Most bytes of the files.
        folder: The folder.
    """

    def __init__(self, max_bytes: int, folder: Path) -> None:
        """Check that files can be made.

        Raises:
            InputError: They cannot.
        """
        self.max_bytes, self.folder = max_bytes, folder
        self._used, self._given = 0, deque[int]()
        self._lock = threading.RLock()
        try:
            os.close(_file_without_name(folder))
        except OSError as error:
            raise InputError(
                f"`spill_folder` is `{folder}`, where no file can be made: {error.strerror}."
            ) from None

    @staticmethod
    def of(max_bytes: int, folder: str | os.PathLike[str] | None) -> "SpillSpace":
        """Return the space of a folder, or of the system's for temporary files.

        Raises:
            InputError: No file can be made in it.
        """
        if folder is None:
            from tempfile import gettempdir  # it takes time to import

            folder = gettempdir()
        return SpillSpace(max_bytes, Path(folder))

    @property
    def used_bytes(self) -> int:
        """Bytes of all files."""
        with self._lock:
            while self._given:
                self._used -= self._given.popleft()
            return self._used

    def give(self, size_bytes: int) -> None:
        """Count bytes as free again; takes no lock, because rows are also collected under one."""
        self._given.append(size_bytes)

    def spill(self, rows: CacheRows, length: int) -> "SpilledRows":
        """Write the first rows of a session's caches to a file.

        Raises:
            CapacityError: The cap does not hold them, or the system has no space for them.
        """
        size = sum(len(part) for part in _parts(rows, length))
        with self._lock:
            left = self.max_bytes - self.used_bytes
            if size > left:
                raise self._full(size, f"{format_bytes(left)} of `spill_bytes` are free")
            self._used += size
        try:
            return SpilledRows(self, rows, length, size)
        except OSError as error:
            self.give(size)
            raise self._full(size, str(error.strerror)) from None

    def _full(self, size: int, reason: str) -> CapacityError:
        return CapacityError(
            f"The session that was idle longest cannot be spilled: its {format_bytes(size)} do "
            f"not go to `{self.folder}`: {reason}. Close, reset or truncate a session of the "
            "pool, or make a pool with more `spill_bytes` or in another `spill_folder`.",
            needed_bytes=self.used_bytes + size,
            limit_bytes=self.max_bytes,
        )


class SpilledRows:
    """Rows of one session in a file; it is closed when nothing refers to this."""

    def __init__(self, space: SpillSpace, rows: CacheRows, length: int, size_bytes: int) -> None:
        """Write the first rows.

        Raises:
            OSError: The system refuses.
        """
        self._length, self._file = length, _file_without_name(space.folder)
        try:
            if size_bytes:
                os.posix_fallocate(self._file, 0, size_bytes)
            offset = 0
            for part in _parts(rows, length):
                _write(self._file, part, offset)
                offset += len(part)
        except BaseException:
            os.close(self._file)
            raise
        weakref.finalize(self, _release, self._file, space, size_bytes)

    def read(self, rows: CacheRows, start: int, stop: int) -> None:
        """Read rows `[start, stop)`, which were reached, to where they were.

        Raises:
            OSError: The file cannot be read.
        """
        offset = 0
        for part in _parts(rows, self._length):
            row = len(part) // self._length
            _read(self._file, part[start * row : stop * row], offset + start * row)
            offset += len(part)


def read_back(session: "Session", kept: "KeptTokens", further: int) -> bool:
    """Read the rows of a spilled session, and show those of a prefix that others have.

    Args:
        session: An evicted session with tokens.
        kept: Its tokens.
        further: Tokens behind these whose rows are wanted too.

    Returns:
        Whether they are there: the file could be read.

    Raises:
        CapacityError: The pool has too few free pages; the session stays spilled.
    """
    rows, count, prefixes, done = session._rows, session.length, session._prefixes, 0
    assert kept.spilled is not None
    try:
        if prefixes is not None:
            done = prefixes.adopt(kept.all(), rows, session._giver)
        session._reach(done, count + further)
        kept.spilled.read(rows, done, count)
    except BaseException as error:
        rows.clear(0, count)
        if prefixes is not None:
            prefixes.cut(0)
        if not isinstance(error, OSError):
            raise
        kept.spilled = None  # a file that cannot be read: its tokens are computed again
        return False
    kept.spilled = None
    return True


def _parts(rows: CacheRows, length: int) -> Iterator[memoryview]:
    """Give the bytes of the first rows, each run of adjacent ones at once."""
    for name in rows.arrays:
        part = rows.part(name, 0, length)
        for place in np.ndindex(part.shape[: rows.axis(name)]):
            yield bytes_of(part[place])


def _file_without_name(folder: Path) -> int:
    """Make a file that only its descriptor leads to.

    Raises:
        OSError: The system refuses.
    """
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:  # file systems without such files
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR):
            raise
    from tempfile import mkstemp  # it takes time to import

    file, name = mkstemp(dir=folder)
    os.unlink(name)
    return file


def _write(file: int, part: memoryview, offset: int) -> None:
    done = 0
    while done < len(part):
        done += os.pwrite(file, part[done:], offset + done)


def _read(file: int, part: memoryview, offset: int) -> None:
    done = 0
    while done < len(part):
        count = os.preadv(file, [part[done:]], offset + done)
        if not count:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        done += count


def _release(file: int, space: SpillSpace, size_bytes: int) -> None:
    os.close(file)
    space.give(size_bytes)
