"""Pool of arenas for reuse: each run reserves one and releases it."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tightship._core import ArenaClaim, CommittedRange
from tightship.engine.arenas.idle_trimmer import IdleTrimmer
from tightship.engine.arenas.retention import RUNS, Demand, Retention
from tightship.engine.run.arena import Arena, Arenas, Reserved
from tightship.engine.run.executable import Executable
from tightship.engine.run.limits import Limits
from tightship.engine.weights.allocation import backed, ranged
from tightship.errors import InputError

POLL_S = 0.02
"""Seconds between two checks of a waiting run's limits."""
HUGE_BYTES = 2 << 20
LEAST_BYTES = 256 << 10
"""Least bytes that are worth a system call to give back."""


@dataclass(slots=True, eq=False)
class ArenaBacking:
    """Memory that grows and shrinks, with the arenas of programs in it; used by one run at most.

    What runs in the memory, or gives it back, has the claim. A step of one token takes it without
    the pool, while the room is free there.
    """

    range: CommittedRange
    arenas: Arenas
    claim: ArenaClaim = field(default_factory=ArenaClaim)
    demand: Demand = field(default_factory=Demand)
    needed_bytes: int = 0
    since_ns: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes backed by memory now."""
        return self.range.size_bytes

    def arena(self, executable: Executable) -> Arena:
        """Return the program's arena, made on first use."""
        return self.arenas.of(executable)

    def tail_bytes(self, size_bytes: int) -> int:
        """Count bytes after the first `size_bytes`; a huge page is given back only whole."""
        whole = -(-size_bytes // HUGE_BYTES) * HUGE_BYTES
        return self.size_bytes - (whole if size_bytes >= HUGE_BYTES else max(size_bytes, 0))

    def shrink(self, size_bytes: int) -> None:
        """Give back bytes after the first `size_bytes`; the caller has the claim."""
        if size_bytes < self.size_bytes:
            self.range.resize(max(size_bytes, 0))

    def shrink_unclaimed(self, size_bytes: int) -> None:
        """Give back bytes after the first `size_bytes`, unless a step has the claim."""
        if size_bytes < self.size_bytes and self.claim.take():
            try:
                self.shrink(size_bytes)
            finally:
                self.claim.give()

    def note_use(self, number: int) -> None:
        """Note the last step that took the claim without the pool."""
        if self.claim.used_ns > self.since_ns:
            self.since_ns = self.claim.used_ns
            self.demand.note(number, self.since_ns, 0, self.claim.used_bytes)


class ArenaPool:
    """Pool of at most `capacity` rooms, each for any program; a room is free or one run has it.

    A run takes a free room that is large enough; else the largest free one grows. Rooms and
    `beside_bytes` of runs together stay within the budget; after the budget is lowered, once `fits`
    is true. Memory that runs no longer need is given back as `retention` says.
    """

    def __init__(
        self,
        capacity: int,
        retention: Retention | None = None,
        *,
        make: Callable[[int], CommittedRange] = CommittedRange,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._capacity = capacity
        self.retention = retention or Retention()
        self._make, self._clock_ns = make, clock_ns
        self._budget_bytes: int | None = None
        self._largest_bytes: int | None = None
        self._free: list[ArenaBacking] = []
        self._used: list[ArenaBacking] = []
        self._beside_bytes = self._runs = self._peak_bytes = 0
        self._closed = False
        self._waiting = 0
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._watch = IdleTrimmer(self, self._lock)

    @contextmanager
    def reserved(
        self, executable: Executable, limits: Limits, beside_bytes: int = 0
    ) -> Iterator[Arena]:
        """Reserve an arena for the length of a `with` block."""
        room = self.reserve(executable, limits, beside_bytes)
        try:
            yield room.arena(executable)
        finally:
            self.release(room, beside_bytes)

    def reserve(self, executable: Executable, limits: Limits, beside_bytes: int) -> ArenaBacking:
        """Reserve a room with an arena for a program, and `beside_bytes` of the budget.

        Raises:
            StoppedError: The limits' stop flag was set while none was free.
            DeadlineError: The limits' deadline passed while none was free.
            InputError: The pool is closed.
            OutOfMemoryError: The system refuses a new room, or a larger one.
        """
        room = self._reserve(executable, limits, beside_bytes)
        if executable not in room.arenas:
            try:
                room.arena(executable)
            except BaseException:
                self.release(room, beside_bytes)
                raise
        return room

    def warm(self, executable: Executable) -> None:
        """Back an arena for a program before its first run.

        Raises:
            OutOfMemoryError: It cannot be allocated.
        """
        with self.reserved(executable, Limits()):
            pass

    def forget(self, executable: Executable) -> None:
        """Drop the arenas of a program that is not running."""
        with self._lock:
            for room in (*self._free, *self._used):
                room.arenas.forget(executable)

    def resize(self, largest_bytes: int | None, budget_bytes: int | None) -> None:
        """Set the largest program's arena size and the budget; give memory beyond them back."""
        with self._lock:
            self._largest_bytes, self._budget_bytes = largest_bytes, budget_bytes
            for room in self._free:
                self._cut(room)
            self._make_way(0)
            self._changed.notify_all()

    @property
    def fits(self) -> bool:
        """Whether all memory taken is within the budget."""
        with self._lock:
            return self._has(0)

    @property
    def held_bytes(self) -> int:
        """Bytes of all rooms."""
        with self._lock:
            return sum([room.range.size_bytes for room in self._free + self._used])

    @property
    def used_bytes(self) -> int:
        """Bytes of rooms that runs have reserved."""
        with self._lock:
            return sum(
                room.size_bytes for room in (*self._used, *self._free) if room.claim.is_taken
            )

    @property
    def peak_bytes(self) -> int:
        """Most bytes that rooms had at any time."""
        return self._peak_bytes

    def _reserve(self, executable: Executable, limits: Limits, beside_bytes: int) -> ArenaBacking:
        with self._lock:
            while True:
                if self._closed:
                    raise InputError("The model was closed; load it again to run it.")
                room = self._taken(executable, beside_bytes)
                if room is not None:
                    break
                limits.check()
                self._wait(POLL_S)
            room.needed_bytes, room.since_ns = executable.arena_bytes, self._clock_ns()
            self._beside_bytes += beside_bytes
            self._used.append(room)
            return room

    def _taken(self, executable: Executable, beside_bytes: int) -> ArenaBacking | None:
        """Take a room that is large enough out of the free ones; None if there is none yet."""
        needed = executable.arena_bytes
        room = self._chosen(executable)
        if room is None:
            if len(self._used) >= self._capacity or not self._make_way(needed + beside_bytes):
                return None
            return self._made(needed, needed)
        self._free.remove(room)
        if not self._make_way(max(needed - room.size_bytes, 0) + beside_bytes):
            self._put_back(room)
            return None
        return room if needed <= room.size_bytes else self._grown(room, needed)

    def _chosen(self, executable: Executable) -> ArenaBacking | None:
        """Claim the smallest free room that fits, preferably one with the program's arena."""
        free = list(self._free)
        while free:
            room = self._best(free, executable)
            if room.claim.take():
                return room
            free.remove(room)
        return None

    def _best(self, free: Sequence[ArenaBacking], executable: Executable) -> ArenaBacking:
        needed = executable.arena_bytes
        if len(free) == 1:
            return free[0]
        fitting = [room for room in free if room.size_bytes >= needed]
        if fitting:
            return min(fitting, key=lambda room: (executable not in room.arenas, room.size_bytes))
        return max(free, key=lambda room: room.size_bytes)

    def _put_back(self, room: ArenaBacking) -> None:
        """Let others claim a room that no run has any more."""
        self._free.append(room)
        room.claim.give()

    def _made(self, size_bytes: int, capacity_bytes: int) -> ArenaBacking:
        memory = ranged(self._make, capacity_bytes, size_bytes)
        room = ArenaBacking(memory, Arenas(memory))
        room.claim.take()
        self._note_peak(room)
        return room

    def _grown(self, room: ArenaBacking, size_bytes: int) -> ArenaBacking:
        """Grow a room in place, or make one with twice the addresses if its own do not suffice."""
        if size_bytes > room.range.capacity_bytes:
            room.shrink(0)
            return self._made(size_bytes, 2 * size_bytes)
        is_grown = False
        try:
            backed(room.range, size_bytes)
            is_grown = True
        finally:
            if not is_grown:
                self._put_back(room)
        room.demand.busy_ns = 0
        self._note_peak(room)
        return room

    def _note_peak(self, room: ArenaBacking) -> None:
        self._peak_bytes = max(self._peak_bytes, self.held_bytes + room.size_bytes)

    def _make_way(self, more_bytes: int) -> bool:
        """Give free rooms back until the budget has `more_bytes` left; return whether it has."""
        if self._budget_bytes is None:
            return True
        for room in sorted(self._free, key=lambda room: room.size_bytes):
            if self._has(more_bytes):
                break
            if room.claim.take():
                self._drop(room)
        return self._has(more_bytes)

    def _has(self, more_bytes: int) -> bool:
        budget = self._budget_bytes
        return budget is None or self.held_bytes + self._beside_bytes + more_bytes <= budget

    def _drop(self, room: ArenaBacking) -> None:
        """Give up a room whose claim the caller has taken, for ever."""
        self._free.remove(room)
        room.shrink(0)

    def _cut(self, room: ArenaBacking) -> None:
        """Shrink a room to what the largest program needs."""
        if self._largest_bytes is not None:
            room.shrink_unclaimed(self._largest_bytes)

    def release(self, room: Reserved, beside_bytes: int) -> None:
        """Give a room of `reserve` back."""
        assert isinstance(room, ArenaBacking)
        with self._lock:
            self._runs += 1
            self._used.remove(room)
            self._put_back(room)
            self._beside_bytes -= beside_bytes
            self._cut(room)
            if self._closed and room.claim.take():
                self._drop(room)
            self._make_way(0)
            if self.held_bytes - self.retention.kept_bytes >= LEAST_BYTES:
                now = self._clock_ns()
                room.demand.note(self._runs, now, now - room.since_ns, room.needed_bytes)
                self._return_idle(now)
            if self._waiting:
                self._changed.notify_all()

    def _wait(self, most_s: float | None = None) -> None:
        """Wait for a change; notified only if counted, because that costs a run more than most."""
        self._waiting += 1
        try:
            self._changed.wait(most_s)
        finally:
            self._waiting -= 1

    def _return_idle(self, now_ns: int) -> None:
        """Give back idle memory of free rooms; start the watch if more may become idle."""
        idle_ns = self.retention.idle_ns
        beyond = self.held_bytes - self.retention.kept_bytes
        if idle_ns is None or beyond < LEAST_BYTES:
            return
        is_more = False
        since_number = self._runs + 1 - RUNS * (len(self._free) + len(self._used))
        for room in list(self._free):
            room.note_use(self._runs)
            least = room.size_bytes - beyond
            wanted = room.demand.wanted_bytes(room.size_bytes, now_ns - idle_ns, since_number)
            if room.tail_bytes(max(wanted, least)) >= LEAST_BYTES:
                beyond -= room.tail_bytes(max(wanted, least))
                room.shrink_unclaimed(max(wanted, least))
                if room.size_bytes == 0:
                    self._free.remove(room)
            else:
                is_more = is_more or room.tail_bytes(least) >= LEAST_BYTES
        if is_more and not self._closed:
            self._watch.start(idle_ns / 1e9)

    def sweep(self) -> int:
        """Give back memory that is idle by now; return its bytes."""
        with self._lock:
            before = self.held_bytes
            self._return_idle(self._clock_ns())
            return before - self.held_bytes

    def forked(self) -> None:
        """Forget runs of the parent's threads in a forked child."""
        self._used.clear()
        self._free = [room for room in self._free if not room.claim.is_taken]
        self._beside_bytes = self._waiting = 0

    def release_unused(self) -> None:
        """Give back the memory of free rooms."""
        with self._lock:
            for room in self._free:
                room.shrink_unclaimed(0)

    def close(self) -> None:
        """Wait until no run has a room, then give all of them back."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()
            while self._used:
                self._wait()
            for room in list(self._free):
                while not room.claim.take():
                    self._wait(POLL_S)
            self._free.clear()
        self._watch.stop()
