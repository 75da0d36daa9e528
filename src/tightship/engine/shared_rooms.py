"""Rooms in slots that processes share, reserved and released as those of a pool of one's own."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tightship.engine.arena import Arena, Arenas, Reserved
from tightship.engine.executable import Executable
from tightship.engine.idle_watch import IdleWatch
from tightship.engine.limits import Limits
from tightship.engine.retention import Retention
from tightship.errors import InputError
from tightship.resource.shared_arenas import SharedArenaPool
from tightship.resource.slot_file import Mapping, Slot

FIRST_WAIT_S, LONGEST_WAIT_S = 1e-4, 4e-3
"""How soon a run looks again for a slot that another process may have given back, at first and at
last: nobody tells it."""


@dataclass(slots=True, eq=False)
class SharedRoom:
    """A slot that a run has, and programs' arenas in it."""

    slot: Slot
    arenas: Arenas
    needed_bytes: int

    def arena(self, executable: Executable) -> Arena:
        """The program's arena, made when it first comes."""
        return self.arenas.of(executable)


@dataclass(slots=True)
class Taken:
    """Bytes of a model's budget."""

    arenas_bytes: int = 0
    beside_bytes: int = 0
    peak_bytes: int = 0


@dataclass(slots=True, eq=False, weakref_slot=True)
class SharedRooms:
    """A model's use of a shared pool: what its own runs take at once stays within its budget."""

    pool: SharedArenaPool
    retention: Retention = field(default_factory=Retention)
    clock_ns: Callable[[], int] = time.monotonic_ns
    lock: threading.RLock = field(default_factory=threading.RLock)
    _budget_bytes: int | None = None
    _taken: Taken = field(default_factory=Taken)
    _arenas: dict[int, tuple[Mapping, Arenas]] = field(default_factory=dict)
    _closed: bool = False
    _watch: IdleWatch = field(init=False)

    def __post_init__(self) -> None:
        self._watch = IdleWatch(self, self.lock)

    def forked(self) -> None:
        """Runs of the parent's threads, and its mappings, are not the child's."""
        self._taken = Taken()
        self._arenas.clear()

    def reserve(self, executable: Executable, limits: Limits, beside_bytes: int) -> SharedRoom:
        """A slot with an arena for a program, and so many bytes of the budget with it.

        Raises:
            StoppedError: The limits' stop flag was set while none was free.
            DeadlineError: Their deadline passed while none was free.
            CapacityError: Slots may not be so large.
            InputError: The model or the pool is closed.
            OutOfMemoryError: The pool's file system has no room.
        """
        room: SharedRoom | None = None
        wait_s = FIRST_WAIT_S
        while (room := self._room(executable, beside_bytes)) is None:
            limits.check()
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
        is_ready = False
        try:
            room.arena(executable)
            is_ready = True
        finally:
            if not is_ready:
                self.release(room, beside_bytes)
        return room

    def _room(self, executable: Executable, beside_bytes: int) -> SharedRoom | None:
        needed = executable.arena_bytes
        if not self._book(needed, beside_bytes):
            return None
        slot: Slot | None = None
        try:
            slot = self.pool.take(needed)
        finally:
            if slot is None:
                self._cancel(needed, beside_bytes)
        if slot is None:
            return None
        return SharedRoom(slot, self._arenas_of(slot), needed)

    def _book(self, needed_bytes: int, beside_bytes: int) -> bool:
        with self.lock:
            if self._closed:
                raise InputError("The model was closed; load it again to run it.")
            taken, budget = self._taken, self._budget_bytes
            after = taken.arenas_bytes + taken.beside_bytes + needed_bytes + beside_bytes
            if budget is not None and after > budget:
                return False
            taken.arenas_bytes += needed_bytes
            taken.beside_bytes += beside_bytes
            taken.peak_bytes = max(taken.peak_bytes, taken.arenas_bytes)
            return True

    def _cancel(self, needed_bytes: int, beside_bytes: int) -> None:
        with self.lock:
            self._taken.arenas_bytes -= needed_bytes
            self._taken.beside_bytes -= beside_bytes

    def _arenas_of(self, slot: Slot) -> Arenas:
        assert slot.mapping is not None
        with self.lock:
            found = self._arenas.get(slot.index)
            if found is None or found[0] is not slot.mapping:
                found = self._arenas[slot.index] = slot.mapping, Arenas(slot.mapping)
            return found[1]

    def release(self, room: Reserved, beside_bytes: int) -> None:
        """Give back what `reserve` gave."""
        assert isinstance(room, SharedRoom)
        has_more = self._without_idle(room.slot, room.needed_bytes)
        self.pool.give(room.slot)
        self._cancel(room.needed_bytes, beside_bytes)
        if has_more:
            self._look_later()

    def _without_idle(self, slot: Slot, needed_bytes: int) -> bool:
        """Give back what runs need no more of a slot; whether it has more, which may go later."""
        now_ns, idle_ns, kept = self.clock_ns(), self.retention.idle_ns, self.retention.kept_bytes
        if idle_ns is None:
            return False
        slot.note_run(needed_bytes, now_ns)
        slot.give_idle(now_ns, idle_ns, kept)
        return slot.has_more_than(kept)

    def _look_later(self) -> None:
        with self.lock:
            if not self._closed and self.retention.idle_s is not None:
                self._watch.start(self.retention.idle_s)

    def sweep(self) -> int:
        """Give back what is idle of slots that nobody has; its bytes."""
        idle_ns = self.retention.idle_ns
        if idle_ns is None or self._closed:
            return 0
        given, has_more = self.pool.give_idle(self.clock_ns(), idle_ns, self.retention.kept_bytes)
        if has_more:
            self._look_later()
        return given

    def warm(self, executable: Executable) -> None:
        """Have a slot ready for a program, if one is free.

        Raises:
            CapacityError: Slots may not be so large.
            OutOfMemoryError: The pool's file system has no room.
        """
        room = self._room(executable, 0)
        if room is not None:
            self.release(room, 0)

    def forget(self, executable: Executable) -> None:
        """Drop the arenas of a program that is not running."""
        with self.lock:
            for _, arenas in self._arenas.values():
                arenas.forget(executable)

    def resize(self, largest_bytes: int | None, budget_bytes: int | None) -> None:  # noqa: ARG002
        """Say what there is; slots are as large as others need them."""
        with self.lock:
            self._budget_bytes = budget_bytes

    @property
    def fits(self) -> bool:
        """Whether what is taken is within the budget."""
        with self.lock:
            taken, budget = self._taken, self._budget_bytes
            return budget is None or taken.arenas_bytes + taken.beside_bytes <= budget

    @property
    def held_bytes(self) -> int:
        """What the model's runs have of slots now; what is free is everybody's."""
        with self.lock:
            return self._taken.arenas_bytes

    @property
    def used_bytes(self) -> int:
        """All of that."""
        return self.held_bytes

    @property
    def peak_bytes(self) -> int:
        """The most that they ever had."""
        with self.lock:
            return self._taken.peak_bytes

    def release_unused(self) -> None:
        """Give back the memory of slots that no run of any process has."""
        self.pool.release_unused()

    def close(self) -> None:
        """Use slots no more, once no run of the model has one; the pool stays open."""
        with self.lock:
            self._closed = True
        self._watch.stop()
        wait_s = FIRST_WAIT_S
        while self.used_bytes:
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
        with self.lock:
            self._arenas.clear()
