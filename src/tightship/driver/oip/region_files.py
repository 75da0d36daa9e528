"""The files behind named regions. They are read and written by system calls, never mapped.

So a client that truncates its object cannot end the driver by a signal; it gets an error.
"""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tightship.driver.oip.refusal import OipError
from tightship.driver.rules.regions import Code, Region, Regions

SHARED_MEMORY_FOLDER = Path("/dev/shm")


class RegionFiles:
    """Regions, each with its object open. May be used from several threads."""

    def __init__(self, *, is_enabled: bool, folder: Path = SHARED_MEMORY_FOLDER) -> None:
        self._regions = Regions(is_enabled=is_enabled)
        self._folder = folder
        self._files: dict[str, int] = {}
        self._lock = threading.Lock()

    def check_enabled(self) -> None:
        """Refuse a call that changes regions where clients may not.

        Raises:
            RegionError: They may not.
        """
        self._regions.check_enabled()

    def register(self, region: Region) -> None:
        """Open a region's object and add the region; nothing stays open if it is refused.

        Raises:
            RegionError, OipError: As `Regions.register`; or the object is not there, no regular
                file, or another user's.
        """
        with self._lock:
            self._regions.check_key(region)
            file = self._opened(region)
            try:
                self._regions.register(region, self._size_of_own(file, region))
            except BaseException:
                os.close(file)
                raise
            self._files[region.name] = file

    def unregister(self, name: str | None) -> None:
        """As `Regions.unregister`; all where there is no name."""
        with self._lock:
            regions = self._regions
            self._close(regions.unregister_all() if name is None else regions.unregister(name))

    def status(self, name: str | None) -> list[Region]:
        """As `Regions.status`."""
        with self._lock:
            return self._regions.status(name)

    @contextmanager
    def used(self, name: str, offset_bytes: int, size_bytes: int) -> Iterator[tuple[int, int]]:
        """The file of bytes that stays open meanwhile, and where in it they begin.

        Raises:
            RegionError: There is no such region, or the bytes are not in it.
        """
        with self._lock:
            region = self._regions.begin_use(name, offset_bytes, size_bytes)
            file = self._files[name]
        try:
            yield file, region.offset_bytes + offset_bytes
        finally:
            with self._lock:
                self._close(self._regions.end_use(region))

    def _opened(self, region: Region) -> int:
        path = self._folder / region.key.lstrip("/")
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            return os.open(path, flags)
        except OSError:
            raise OipError(
                f"Unable to open shared memory region: '{region.key}'", Code.INTERNAL
            ) from None

    def _size_of_own(self, file: int, region: Region) -> int:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise OipError(f"Unable to open shared memory region: '{region.key}'", Code.INTERNAL)
        return found.st_size

    def _close(self, regions: list[Region]) -> None:
        for region in regions:
            os.close(self._files.pop(region.name))


def read(file: int, offset_bytes: int, size_bytes: int) -> memoryview:
    """Bytes of a file.

    Raises:
        OipError: It has become shorter.
    """
    if os.fstat(file).st_size - offset_bytes < size_bytes:
        raise _shortened()
    content = np.empty(size_bytes, np.uint8).data  # not zeroed first
    had = 0
    while had < size_bytes:
        count = os.preadv(file, [content[had:]], offset_bytes + had)
        if not count:
            raise _shortened()
        had += count
    return content


def write(file: int, offset_bytes: int, content: memoryview) -> None:
    """Put bytes into a file.

    Raises:
        OipError: It has become shorter, or its system has no memory left.
    """
    if os.fstat(file).st_size - offset_bytes < content.nbytes:
        raise _shortened()
    done = 0
    while done < content.nbytes:
        try:
            done += os.pwrite(file, content[done:], offset_bytes + done)
        except OSError as error:
            raise OipError(
                f"failed to write to a shared memory region: {os.strerror(error.errno or 0)}",
                Code.INTERNAL,
            ) from None


def _shortened() -> OipError:
    return OipError("a shared memory region is shorter than when it was registered")
