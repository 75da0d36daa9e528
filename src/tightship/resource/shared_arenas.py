"""Arenas that processes share: one for each concurrent run instead of each process."""

import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from tightship.errors import CapacityError, InputError
from tightship.forks import guard
from tightship.public_calls import public_methods
from tightship.quantity import format_bytes, parse_bytes
from tightship.resource.private_folder import private, runtime_folder
from tightship.resource.slot_file import (
    SLOTS_MAX,
    STRIDE,
    Slot,
    SlotFile,
    open_slots,
    remove_unused,
)

SUFFIX = ".arenas"


@public_methods
class SharedArenaPool:
    """Slots of a private file, for runs of all processes of a user that name the same pool.

    A slot is free, or held by one run of one process; the system frees it when that process ends,
    even if killed. Slots grow to the largest program that ran in them. Processes that can read the
    file, this user's only, can read what the last run left in it.

    Attributes:
        path: Path of the file.
        slot_count: Most concurrent runs of all processes.
    """

    def __init__(
        self,
        name: str = "default",
        *,
        slots: int | None = None,
        max_arena: str | int = STRIDE,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Open the file, or make it.

        Args:
            name: Name of the pool; processes that give the same name share slots.
            slots: Number of slots; by default one for each processor. Processes with different
                numbers share the first ones.
            max_arena: Most that one slot may take, such as `"1GiB"`, or in bytes.
            folder: Folder of the file, which only this user can enter. By default `tightship` in
                `XDG_RUNTIME_DIR`, else a folder in shared memory.

        Raises:
            InputError: An argument is out of range, or folder or file are open to others.
        """
        self.slot_count = min(os.cpu_count() or 1, SLOTS_MAX) if slots is None else slots
        if not 1 <= self.slot_count <= SLOTS_MAX:
            raise InputError(f"`slots` is {slots}; it must be from 1 to {SLOTS_MAX}.")
        if not re.fullmatch(r"\w[\w.-]*", name):
            raise InputError(f"`{name}` cannot name a pool; use letters, digits, `_`, `.` and `-`.")
        self.max_arena_bytes = min(parse_bytes(max_arena, "max_arena"), STRIDE)
        self.path = (runtime_folder() if folder is None else private(Path(folder))) / (
            name + SUFFIX
        )
        self.lock = threading.RLock()
        self._had: set[int] = set()
        self._closed = False
        remove_unused(self.path.parent, SUFFIX)
        self._file = self._open()
        guard(self)

    def _open(self) -> SlotFile:
        file = open_slots(self.path)
        self._end = weakref.finalize(self, file.close)
        return file

    def forked(self) -> None:
        """Forget the parent's slots in a forked child; the file is opened anew."""
        if self._end.detach():
            self._file.abandon()
        self._had.clear()

    @property
    def size_bytes(self) -> int:
        """Memory that the file takes for all processes.

        Raises:
            InputError: The pool is closed.
        """
        with self.lock:
            return self._current().size_bytes

    def take(self, size_bytes: int) -> Slot | None:
        """Take a slot of at least `size_bytes`, mapped, until `give`; None while all are taken.

        Raises:
            CapacityError: The size exceeds `max_arena`.
            InputError: The pool is closed.
            OutOfMemoryError: The file system is full.
        """
        self.check(size_bytes)
        slot = self._locked()
        if slot is None:
            return None
        is_ready = False
        try:
            slot.fit(size_bytes)
            is_ready = True
        finally:
            if not is_ready:
                self.give(slot)
        return slot

    def check(self, size_bytes: int) -> None:
        """Check that a slot may hold an arena of `size_bytes`.

        Raises:
            CapacityError: The size exceeds `max_arena`.
        """
        if size_bytes > self.max_arena_bytes:
            raise CapacityError(
                f"An arena of {format_bytes(size_bytes)} ({size_bytes} bytes) is more than slots "
                f"of `{self.path}` may have: {format_bytes(self.max_arena_bytes)}. Raise "
                "`max_arena`, or give smaller inputs.",
                needed_bytes=size_bytes,
                limit_bytes=self.max_arena_bytes,
            )

    def _locked(self) -> Slot | None:
        """Lock the first free slot, so that processes that alternate use the same one."""
        with self.lock:
            file = self._current()
            if not self._had and not file.is_there:
                self._end()
                file = self._current()
            for index in range(self.slot_count):
                if index not in self._had and (slot := self._slot(file, index)) and slot.lock():
                    self._had.add(index)
                    return slot
        return None

    def _slot(self, file: SlotFile, index: int) -> Slot | None:
        """Return a slot; None if the file was removed or replaced while it is in use here."""
        try:
            return file.slot(index)
        except FileNotFoundError:
            return None

    def give(self, slot: Slot) -> None:
        """Give a slot of `take` back."""
        with self.lock:
            slot.unlock()
            self._had.discard(slot.index)

    def release_unused(self) -> None:
        """Give back the memory of free slots."""
        with self.lock:
            for slot in self._free():
                slot.empty()

    def give_idle(self, now_ns: int, idle_ns: int, kept_bytes: int) -> tuple[int, bool]:
        """Give back memory of free slots that no run of any process has needed for `idle_ns`.

        Args:
            now_ns: Time of `time.monotonic_ns`, which all processes share.
            idle_ns: Nanoseconds without a run that needs the memory.
            kept_bytes: Bytes to keep of each slot.

        Returns:
            Bytes given back, and whether a slot has more, which may go later.
        """
        given, has_more = 0, False
        with self.lock:
            for slot in self._free() if not self._closed else ():
                given += slot.give_idle(now_ns, idle_ns, kept_bytes)
                has_more = has_more or slot.has_more_than(kept_bytes)
        return given, has_more

    def _free(self) -> Iterator[Slot]:
        """Yield free slots, each locked meanwhile."""
        file = self._current()
        for index in range(self.slot_count):
            if index not in self._had and (slot := self._slot(file, index)) and slot.lock():
                try:
                    yield slot
                finally:
                    slot.unlock()

    def _current(self) -> SlotFile:
        if self._closed:
            raise InputError(f"The pool `{self.path}` is closed; make it again to run in it.")
        if not self._end.alive:
            self._file = self._open()
        return self._file

    def close(self) -> None:
        """Close the pool; the last process removes the file. No run may have a slot."""
        with self.lock:
            self._closed = True
            self._end()

    def __reduce__(self) -> tuple[Callable[..., "SharedArenaPool"], tuple[object, ...]]:
        """Pickle the pool, to be opened by another process."""
        return _opened, (self.path, self.slot_count, self.max_arena_bytes)

    def __enter__(self) -> "SharedArenaPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _opened(path: Path, slots: int, max_arena: int) -> SharedArenaPool:
    name = path.name.removesuffix(SUFFIX)
    return SharedArenaPool(name, slots=slots, max_arena=max_arena, folder=path.parent)
