"""Arenas in slots that processes share, with the interface of `ArenaPool`."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tightship.engine.arenas.admission import FIRST_WAIT_S, LONGEST_WAIT_S, AdmittedBackings
from tightship.engine.arenas.idle_trimmer import IdleTrimmer
from tightship.engine.arenas.retention import Retention
from tightship.engine.run.arena import Arena, Arenas, Reserved
from tightship.engine.run.executable import Executable
from tightship.engine.run.limits import Limits
from tightship.resource.shared_arenas import SharedArenaPool
from tightship.resource.slot_file import Mapping, Slot


@dataclass(slots=True, eq=False)
class SharedBacking:
    """Slot that a run has reserved, and programs' arenas in it."""

    slot: Slot
    arenas: Arenas
    needed_bytes: int

    def arena(self, executable: Executable) -> Arena:
        """Return the program's arena, made on first use."""
        return self.arenas.of(executable)


@dataclass(slots=True, eq=False, weakref_slot=True)
class SharedBackings(AdmittedBackings):
    """A model's use of a shared pool; its own runs together stay within its budget."""

    pool: SharedArenaPool
    retention: Retention = field(default_factory=Retention)
    clock_ns: Callable[[], int] = time.monotonic_ns
    _arenas: dict[int, tuple[Mapping, Arenas]] = field(default_factory=dict)
    _watch: IdleTrimmer = field(init=False)

    def __post_init__(self) -> None:
        self._watch = IdleTrimmer(self, self.lock)

    def forked(self) -> None:
        """Forget runs and mappings of the parent in a forked child."""
        self._admission.forked()
        self._arenas.clear()

    def reserve(self, executable: Executable, limits: Limits, beside_bytes: int) -> SharedBacking:
        """Reserve a slot for a program, and `beside_bytes` of the model's budget.

        Raises:
            StoppedError: The limits' stop flag was set while none was free.
            DeadlineError: The limits' deadline passed while none was free.
            CapacityError: The program needs more than a slot may have.
            InputError: The model or the pool is closed.
            OutOfMemoryError: The pool's file system is full.
        """
        room: SharedBacking | None = None
        wait_s = FIRST_WAIT_S
        while (room := self._room(executable, beside_bytes)) is None:
            limits.check()
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
        try:
            room.arena(executable)
        except BaseException:
            self.release(room, beside_bytes)
            raise
        return room

    def _room(self, executable: Executable, beside_bytes: int) -> SharedBacking | None:
        needed = executable.arena_bytes
        if not self._admission.book(needed, beside_bytes):
            return None
        slot: Slot | None = None
        try:
            slot = self.pool.take(needed)
        finally:
            if slot is None:
                self._admission.cancel(needed, beside_bytes)
        if slot is None:
            return None
        return SharedBacking(slot, self._arenas_of(slot), needed)

    def _arenas_of(self, slot: Slot) -> Arenas:
        assert slot.mapping is not None
        with self.lock:
            found = self._arenas.get(slot.index)
            if found is None or found[0] is not slot.mapping:
                found = self._arenas[slot.index] = slot.mapping, Arenas(slot.mapping)
            return found[1]

    def release(self, room: Reserved, beside_bytes: int) -> None:
        """Give a room of `reserve` back."""
        assert isinstance(room, SharedBacking)
        has_more = self._without_idle(room.slot, room.needed_bytes)
        self.pool.give(room.slot)
        self._admission.cancel(room.needed_bytes, beside_bytes)
        if has_more:
            self._look_later()

    def _without_idle(self, slot: Slot, needed_bytes: int) -> bool:
        """Give a slot's idle memory back; return whether it has more, which may go later."""
        now_ns, idle_ns, kept = self.clock_ns(), self.retention.idle_ns, self.retention.kept_bytes
        if idle_ns is None:
            return False
        slot.note_run(needed_bytes, now_ns)
        slot.give_idle(now_ns, idle_ns, kept)
        return slot.has_more_than(kept)

    def _look_later(self) -> None:
        with self.lock:
            if not self._admission.is_closed and self.retention.idle_s is not None:
                self._watch.start(self.retention.idle_s)

    def sweep(self) -> int:
        """Give back the idle memory of free slots; return its bytes."""
        idle_ns = self.retention.idle_ns
        if idle_ns is None or self._admission.is_closed:
            return 0
        given, has_more = self.pool.give_idle(self.clock_ns(), idle_ns, self.retention.kept_bytes)
        if has_more:
            self._look_later()
        return given

    def warm(self, executable: Executable) -> None:
        """Back a slot for a program, if one is free.

        Raises:
            CapacityError: The program needs more than a slot may have.
            OutOfMemoryError: The pool's file system is full.
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
        """Set the budget; slots are as large as the processes together need them."""
        with self.lock:
            self._admission.budget_bytes = budget_bytes

    def release_unused(self) -> None:
        """Give back the memory of slots that no run of any process uses."""
        self.pool.release_unused()

    def close(self) -> None:
        """Wait until no run of the model has a slot, then stop using slots; the pool stays open."""
        self._admission.end()
        self._watch.stop()
        self._admission.close()
        with self.lock:
            self._arenas.clear()
