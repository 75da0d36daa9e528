"""Arenas that models of one process share: one for each concurrent run instead of each model."""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

from tightship.engine.arenas.admission import FIRST_WAIT_S, LONGEST_WAIT_S, AdmittedBackings
from tightship.engine.arenas.arena_pool import ArenaBacking, ArenaPool
from tightship.engine.arenas.retention import Retention
from tightship.engine.run.arena import Reserved
from tightship.engine.run.executable import Executable
from tightship.engine.run.limits import Limits
from tightship.errors import DeadlineError
from tightship.forks import guard

ARENAS_MAX = 256


class ArenaGroup:
    """Pool of arenas for all models that are loaded with it, usable from any thread.

    A run takes any free room, whichever model had it before. Idle memory goes back to the system as
    `retention` says. No room stays larger than the largest program.
    """

    def __init__(self, retention: Retention | None = None, *, arenas: int = ARENAS_MAX) -> None:
        """Let `arenas` runs execute at once; further runs wait."""
        self.pool = ArenaPool(arenas, retention)
        self._lock = threading.Lock()
        self._largest: dict[int, int] = {}

    @property
    def held_bytes(self) -> int:
        """Bytes of all arenas, used or kept."""
        return self.pool.held_bytes

    @property
    def used_bytes(self) -> int:
        """Bytes of arenas that runs have reserved."""
        return self.pool.used_bytes

    def note(self, model: int, largest_bytes: int | None) -> None:
        """Note the arena size of a model's largest program, for the engine.

        Args:
            model: Number of the model.
            largest_bytes: Size in bytes; None when the model is closed.
        """
        with self._lock:
            self._largest.pop(model, None)
            if largest_bytes is not None:
                self._largest[model] = largest_bytes
            self.pool.resize(max(self._largest.values(), default=0), None)

    def close(self) -> None:
        """Give all memory back; no run may be active."""
        self.pool.close()


@dataclass(slots=True, eq=False, weakref_slot=True)
class GroupBackings(AdmittedBackings):
    """A model's use of joint arenas; its own runs together stay within its budget."""

    arenas: ArenaGroup
    _known: dict[int, Executable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        guard(self)

    def forked(self) -> None:
        """Forget runs of the parent's threads in a forked child."""
        self._admission.forked()

    def reserve(self, executable: Executable, limits: Limits, beside_bytes: int) -> ArenaBacking:
        """Reserve a room as `ArenaPool.reserve` does, with the same errors."""
        wait_s = FIRST_WAIT_S
        while not self._admission.book(executable.arena_bytes, beside_bytes):
            limits.check()
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
        self._known[id(executable)] = executable
        room: ArenaBacking | None = None
        try:
            room = self.arenas.pool.reserve(executable, limits, 0)
        finally:
            if room is None:
                self._admission.cancel(executable.arena_bytes, beside_bytes)
        return room

    def release(self, room: Reserved, beside_bytes: int) -> None:
        """Give a room of `reserve` back."""
        assert isinstance(room, ArenaBacking)
        needed_bytes = room.needed_bytes
        self.arenas.pool.release(room, 0)
        self._admission.cancel(needed_bytes, beside_bytes)

    def warm(self, executable: Executable) -> None:
        """Back an arena for a program, if one is free.

        Raises:
            OutOfMemoryError: It cannot be allocated.
        """
        with suppress(DeadlineError):
            self.release(self.reserve(executable, Limits(deadline_ns=0), 0), 0)

    def forget(self, executable: Executable) -> None:
        """Drop the arenas of a program that is not running."""
        self._known.pop(id(executable), None)
        self.arenas.pool.forget(executable)

    def resize(self, largest_bytes: int | None, budget_bytes: int | None) -> None:
        """Set the model's budget, and note the arena size of its largest program."""
        with self.lock:
            self._admission.budget_bytes = budget_bytes
        self.arenas.note(id(self), largest_bytes or 0)

    def release_unused(self) -> None:
        """Give back the memory of rooms that no run of any model uses."""
        self.arenas.pool.release_unused()

    def close(self) -> None:
        """Wait until no run of the model has an arena, then stop using them; other models go on."""
        self._admission.close()
        for executable in list(self._known.values()):
            self.forget(executable)
        self.arenas.note(id(self), None)
