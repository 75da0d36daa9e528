"""Arenas that processes take in turns: as many as run at once, not one for each process."""

import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

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

    A slot is free, or had by one run of one process; it is free again when that process ends,
    however it does. Slots grow to the largest program that ran in them. Whoever can read the
    file, which are processes of this user only, can read what the last run left in it.

    Attributes:
        path: Where the file is.
        slot_count: Runs of all processes that may go on at once.
    """

    def __init__(
        self,
        name: str = "default",
        *,
        slots: int | None = None,
        max_arena: str | int = STRIDE,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Opens the file, or makes it.

        Args:
            name: Processes that give the same name share slots.
            slots: How many there are; one for each processor unless given. Processes that differ
                have the first ones in common.
            max_arena: The most that one slot may take, as `"1GiB"` or in bytes.
            folder: Where the file is; a folder that only this user can enter. By default
                `tightship` in `XDG_RUNTIME_DIR`, else one in shared memory.

        Raises:
            InputError: An argument is out of range, or folder or file are open to others.
        """
        self.slot_count = min(os.cpu_count() or 1, SLOTS_MAX) if slots is None else slots
        if not 1 <= self.slot_count <= SLOTS_MAX:
            raise InputError(f"`slots` is {slots}; it must be from 1 to {SLOTS_MAX}.")
        if not re.fullmatch(r"\w[\w.-]*", name):
            raise InputError(f"`{name}` cannot name a pool; use letters, digits, `_`, `.` and `-`.")
        self.max_arena_bytes = min(parse_bytes(max_arena), STRIDE)
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
        """The child has no slot, and opens the file anew."""
        if self._end.detach():
            self._file.abandon()
        self._had.clear()

    @property
    def size_bytes(self) -> int:
        """Memory that the file takes, whoever uses it.

        Raises:
            InputError: The pool is closed.
        """
        with self.lock:
            return self._current().size_bytes

    def take(self, size_bytes: int) -> Slot | None:
        """A slot of at least so many bytes, mapped, until `give`; None while all are had.

        Raises:
            CapacityError: It is more than `max_arena`.
            InputError: The pool is closed.
            OutOfMemoryError: The file system has no room.
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
        """Refuse an arena that no slot may hold.

        Raises:
            CapacityError: It is more than `max_arena`.
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
        """The first slot that nobody has, so that processes in turns have the same one."""
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
        """None while a file that somebody removed or replaced is still in use here."""
        try:
            return file.slot(index)
        except FileNotFoundError:
            return None

    def give(self, slot: Slot) -> None:
        """Give back what `take` gave."""
        with self.lock:
            slot.unlock()
            self._had.discard(slot.index)

    def release_unused(self) -> None:
        """Give back the memory of slots that no run of any process has."""
        with self.lock:
            for slot in self._free():
                slot.empty()

    def give_idle(self, now_ns: int, idle_ns: int, kept_bytes: int) -> tuple[int, bool]:
        """Give back what no run of any process has needed for so long, of slots that are free.

        Args:
            now_ns: A time of `time.monotonic_ns`, which all processes have in common.
            idle_ns: For how long.
            kept_bytes: What stays of each slot.

        Returns:
            Bytes given back; and whether a slot has more, which may go later.
        """
        given, has_more = 0, False
        with self.lock:
            for slot in self._free() if not self._closed else ():
                given += slot.give_idle(now_ns, idle_ns, kept_bytes)
                has_more = has_more or slot.has_more_than(kept_bytes)
        return given, has_more

    def _free(self) -> Iterator[Slot]:
        """Slots that nobody has, each locked for the turn."""
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
        """Use it no more; the last process removes the file. No run may have a slot."""
        with self.lock:
            self._closed = True
            self._end()

    def __reduce__(self) -> tuple[Callable[..., "SharedArenaPool"], tuple[object, ...]]:
        """The same pool, opened by another process."""
        return _opened, (self.path, self.slot_count, self.max_arena_bytes)

    def __enter__(self) -> "SharedArenaPool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _opened(path: Path, slots: int, max_arena: int) -> SharedArenaPool:
    name = path.name.removesuffix(SUFFIX)
    return SharedArenaPool(name, slots=slots, max_arena=max_arena, folder=path.parent)
