"""File of slots that processes share: locks that end with a process, and mappings.

    byte 0            read-locked by every process that uses the file
    byte 1 + i        write-locked by the holder of slot i
    64 + 8 i          bytes that back slot i
    1024 + 16 i       time since which no run needed all of slot i, and the most that runs needed
    (1 + i) x 64 GiB  slot i

Locks belong to the open file, not to the process (`F_OFD_SETLK`): those of two threads exclude each
other, a child of a fork has none, and the system drops them with the process, even if killed.
Offsets are never read through a mapping, so that a truncated file is noticed.
"""

import fcntl
import mmap
import os
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tightship.errors import InputError, OutOfMemoryError
from tightship.resource.private_folder import refuse_others

SLOTS_MAX = 64
STRIDE = 64 << 30
SIZES_AT = 64
USES_AT = 1024
USE = struct.Struct("<2q")
USERS = 0
LEAST_BYTES = 256 << 10
"""Least bytes that are worth a system call to give back."""
MADV_POPULATE_WRITE = 23
"""Advice of Linux 5.14: backs pages with memory, or fails, instead of a signal on first touch."""

Bytes = NDArray[np.uint8]


def set_lock(file: int, at: int, kind: int, *, waits: bool = False) -> bool:
    """Lock or unlock a byte for an open file; return False if another holds it."""
    wanted = struct.pack("hhqqi0q", kind, os.SEEK_SET, at, 1, 0)
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLKW if waits else fcntl.F_OFD_SETLK, wanted)
    except (BlockingIOError, PermissionError):
        return False
    return True


@dataclass(slots=True, eq=False)
class Mapping:
    """Mapped front of a slot in this process."""

    room: mmap.mmap
    content: Bytes

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return int(self.content.ctypes.data)

    @property
    def size_bytes(self) -> int:
        """Bytes that may be touched while the slot is held."""
        return self.content.size

    def array(self) -> Bytes:
        """Return the bytes, which keep the mapping alive."""
        return self.content


@dataclass(slots=True, eq=False)
class Slot:
    """Slot as seen by one process: an open file for its lock, and a mapping."""

    index: int
    file: int
    path: Path
    mapping: Mapping | None = None

    @property
    def start(self) -> int:
        """Offset of its bytes in the file."""
        return (1 + self.index) * STRIDE

    def lock(self) -> bool:
        """Lock the slot; return False if another holds it."""
        return set_lock(self.file, 1 + self.index, fcntl.F_WRLCK)

    def unlock(self) -> None:
        """Unlock the slot."""
        set_lock(self.file, 1 + self.index, fcntl.F_UNLCK)

    def backed_bytes(self) -> int:
        """Return the bytes that back the slot; 0 if the file was truncated."""
        text = os.pread(self.file, 8, SIZES_AT + 8 * self.index)
        size = int.from_bytes(text, "little") if len(text) == 8 else 0
        is_there = self.start + size <= os.fstat(self.file).st_size
        return size if is_there else 0

    def _note(self, size_bytes: int) -> None:
        os.pwrite(self.file, size_bytes.to_bytes(8, "little"), SIZES_AT + 8 * self.index)

    def fit(self, size_bytes: int) -> Mapping:
        """Back and map at least `size_bytes`. REQUIRES: it is locked.

        Raises:
            OutOfMemoryError: The file system is full.
        """
        wanted = max(-(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE, mmap.PAGESIZE)
        backed = self.backed_bytes()
        try:
            if backed < wanted:
                os.posix_fallocate(self.file, self.start, wanted)
                self._note(wanted)
            if self.mapping is None or self.mapping.size_bytes < wanted:
                self.mapping = self._mapped(max(wanted, backed))
        except OSError as error:
            raise OutOfMemoryError(
                f"Cannot have {wanted} bytes of `{self.path}` for an arena: {error.strerror}. "
                "Free room in its file system, or give `SharedArenaPool` a folder in another.",
                requested_bytes=wanted,
            ) from None
        return self.mapping

    def _mapped(self, size_bytes: int) -> Mapping:
        # a mapping keeps its file open, but the lock's file must be closed with the lock's owner
        other = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if not os.path.samestat(os.fstat(other), os.fstat(self.file)):
                raise FileNotFoundError(2, "it was replaced")
            room = mmap.mmap(other, size_bytes, offset=self.start)
        finally:
            os.close(other)
        with suppress(OSError):
            room.madvise(MADV_POPULATE_WRITE)
        return Mapping(room, np.frombuffer(room, np.uint8))

    def note_run(self, needed_bytes: int, now_ns: int) -> None:
        """Note that a run needed `needed_bytes` of it. REQUIRES: it is locked."""
        if needed_bytes + LEAST_BYTES > self.backed_bytes():
            self._note_use(now_ns, 0)
            return
        since_ns, most = self._use()
        if needed_bytes > most:
            self._note_use(since_ns, needed_bytes)

    def give_idle(self, now_ns: int, idle_ns: int, kept_bytes: int) -> int:
        """Give back memory idle for `idle_ns`; return its bytes. REQUIRES: it is locked."""
        since_ns, most = self._use()
        if 0 <= now_ns - since_ns < idle_ns:
            return 0
        given = self._cut(max(most, kept_bytes))
        self._note_use(now_ns, 0)
        return given

    def has_more_than(self, size_bytes: int) -> bool:
        """Whether it has enough beyond `size_bytes` to be worth giving back."""
        return self.backed_bytes() - size_bytes >= LEAST_BYTES

    def empty(self) -> None:
        """Give its memory back; a mapping then reads zeros. REQUIRES: it is locked."""
        self._cut(0, least_bytes=1)

    def _use(self) -> tuple[int, int]:
        """Return the time since which no run needed all of it, and the most that runs needed."""
        text = os.pread(self.file, USE.size, USES_AT + USE.size * self.index)
        return USE.unpack(text) if len(text) == USE.size else (0, 0)

    def _note_use(self, since_ns: int, most_bytes: int) -> None:
        use = USE.pack(since_ns, most_bytes)
        os.pwrite(self.file, use, USES_AT + USE.size * self.index)

    def _cut(self, size_bytes: int, least_bytes: int = LEAST_BYTES) -> int:
        """Give back bytes beyond `size_bytes`, unless they are few; return their number."""
        backed = self.backed_bytes()
        first = -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        if backed - first < least_bytes:
            return 0
        self._note(first)
        with (
            suppress(OSError),
            mmap.mmap(self.file, backed - first, offset=self.start + first) as room,
        ):
            room.madvise(mmap.MADV_REMOVE)
        return backed - first

    def close(self) -> None:
        """Close its file; a lock of this process ends with it."""
        os.close(self.file)


@dataclass(slots=True, eq=False)
class SlotFile:
    """File of slots that this process uses; the last process to close it removes it.

    A file that a killed process left is reused by the next, or removed when another pool is opened
    in its folder.
    """

    path: Path
    users: int
    slots: dict[int, Slot] = field(default_factory=dict)

    @property
    def is_there(self) -> bool:
        """Whether the path still leads to this file."""
        try:
            return os.path.samestat(self.path.lstat(), os.fstat(self.users))
        except FileNotFoundError:
            return False

    @property
    def size_bytes(self) -> int:
        """Memory that the file takes."""
        return os.fstat(self.users).st_blocks * 512

    def slot(self, index: int) -> Slot:
        """Return a slot, with an open file of its own.

        Raises:
            FileNotFoundError: The file was removed or replaced.
        """
        if index not in self.slots:
            file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            if not os.path.samestat(os.fstat(file), os.fstat(self.users)):
                os.close(file)
                raise FileNotFoundError(2, "it was replaced")
            self.slots[index] = Slot(index, file, self.path)
        return self.slots[index]

    def close(self) -> None:
        """Close the file; the last user's call removes it."""
        if set_lock(self.users, USERS, fcntl.F_WRLCK) and self.is_there:
            self.path.unlink()
        self.abandon()

    def abandon(self) -> None:
        """Close a forked child's copies of its parent's files, which ends none of the locks."""
        for slot in self.slots.values():
            slot.close()
        self.slots.clear()
        os.close(self.users)


def open_slots(path: Path) -> SlotFile:
    """Open the file at a path, made if needed; it must be this user's own, closed to others.

    Raises:
        InputError: It belongs to another user, others may read it, or it is not a regular file.
    """
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise InputError(f"`{path}` cannot be opened: {error.strerror}.") from None
        found = SlotFile(path, file)
        is_private = False
        try:
            status = os.fstat(file)
            refuse_others(path, status, stat.S_ISREG(status.st_mode))
            is_private = True
        finally:
            if not is_private:
                os.close(file)
        set_lock(file, USERS, fcntl.F_RDLCK, waits=True)
        if found.is_there:
            return found
        os.close(file)  # the last user removed it between our opening and our lock


def remove_unused(folder: Path, suffix: str) -> None:
    """Remove files of slots that no process uses, left by killed processes."""
    for path in folder.glob(f"*{suffix}"):
        with suppress(OSError):
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            found = SlotFile(path, file)
            found.close()
