"""Arenas kept for reuse: each run reserves one and releases it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tightship._core import Block, HostResource, NativeContext
from tightship.engine.allocation import allocate
from tightship.engine.executable import Executable, PythonStep
from tightship.engine.limits import Limits
from tightship.engine.program import Operand, Space
from tightship.errors import InputError

Array = NDArray[np.generic]

POLL_S = 0.02
"""How often a waiting run looks at its limits."""


class Arena:
    """A program's view of one block: the native operands in it, and arrays over it."""

    def __init__(self, executable: Executable, block: Block) -> None:
        """`block` holds at least the executable's `arena_bytes`."""
        self.block = block
        self.context = (
            NativeContext(executable.native, block.address) if executable.native else None
        )
        self.scratch: dict[int, Array] = {}
        self._arrays: dict[tuple[Space, int, int, tuple[int, ...]], Array] = {}
        python_steps = [s for s in executable.segments if isinstance(s, PythonStep)]
        if python_steps:
            room = block.array()
            for segment in python_steps:
                self._add_arrays(executable, segment, room)

    def _add_arrays(
        self, executable: Executable, segment: PythonStep, room: NDArray[np.uint8]
    ) -> None:
        placement = executable.placement
        for operand in (*segment.step.reads, *segment.step.writes):
            if operand.space is Space.WEIGHTS:
                array = executable.weights[operand.slot].array()
            elif operand.space is Space.ARENA:
                offset = placement.offset_of(operand)
                array = room[offset : offset + operand.size_bytes]
            else:
                continue
            view = array.view(operand.dtype.numpy).reshape(operand.shape)
            view.flags.writeable = operand.space is Space.ARENA
            self._arrays[_key(operand)] = view
        scratch = placement.schedule_plan.scratch_offset(segment.index)
        if scratch is not None:
            self.scratch[segment.index] = room[scratch : scratch + segment.step.scratch_bytes]

    def array(self, operand: Operand) -> Array:
        """A planned operand of a Python step, row-major."""
        return self._arrays[_key(operand)]


def _key(operand: Operand) -> tuple[Space, int, int, tuple[int, ...]]:
    return operand.space, operand.slot, operand.offset_bytes, operand.shape


@dataclass(slots=True, eq=False)
class Room:
    """A block, and the arenas that programs have in it; in use by one run at most."""

    block: Block
    arenas: dict[int, tuple[Executable, Arena]] = field(default_factory=dict)

    def arena(self, executable: Executable) -> Arena:
        """The program's arena in the block, made when it first comes."""
        found = self.arenas.get(id(executable))
        if found is None:
            found = self.arenas[id(executable)] = executable, Arena(executable, self.block)
        return found[1]


class ArenaPool:
    """At most `capacity` blocks, each for any program that it is large enough for.

    A block is free, or reserved by one run. A run takes a free block that holds its program;
    where all are too small one makes way for a larger one. Blocks, and what runs take beside
    them, never exceed the budget, but where it was lowered: until `fits` says so.
    """

    def __init__(
        self, resource: HostResource, capacity: int, budget_bytes: int | None = None
    ) -> None:
        self._resource = resource
        self._capacity = capacity
        self._budget_bytes = budget_bytes
        self._free: list[Room] = []
        self._used: list[Room] = []
        self._making = 0
        self._taken_bytes = 0
        self._largest_bytes: int | None = None
        self._closed = False
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

    @contextmanager
    def reserved(
        self, executable: Executable, limits: Limits, beside_bytes: int = 0
    ) -> Iterator[Arena]:
        """An arena for the length of a `with` block, as `reserve` and `release` give it."""
        room = self.reserve(executable, limits, beside_bytes)
        try:
            yield room.arena(executable)
        finally:
            self.release(room, beside_bytes)

    def reserve(self, executable: Executable, limits: Limits, beside_bytes: int) -> Room:
        """A block with an arena for a program, and so many bytes of the budget with it.

        Raises:
            StoppedError: The limits' stop flag was set while none was free.
            DeadlineError: Their deadline passed while none was free.
            InputError: The pool is closed.
            OutOfMemoryError: A further block cannot be allocated.
        """
        room = self._reserve(executable.arena_bytes, limits, beside_bytes, executable)
        is_ready = False
        try:
            room.arena(executable)
            is_ready = True
        finally:
            if not is_ready:
                self.release(room, beside_bytes)
        return room

    def warm(self, executable: Executable) -> None:
        """Have an arena ready for a program.

        Raises:
            OutOfMemoryError: It cannot be allocated.
        """
        with self.reserved(executable, Limits()):
            pass

    def forget(self, executable: Executable) -> None:
        """Drop the arenas of a program that is not running."""
        with self._lock:
            for room in (*self._free, *self._used):
                room.arenas.pop(id(executable), None)

    def resize(self, largest_bytes: int | None, budget_bytes: int | None) -> None:
        """Say what the largest program needs and what there is; gives back what is beyond."""
        with self._lock:
            self._largest_bytes, self._budget_bytes = largest_bytes, budget_bytes
            for room in list(self._free):
                if self._is_too_large(room):
                    self._drop(room)
            self._make_way(0)
            self._changed.notify_all()

    @property
    def fits(self) -> bool:
        """Whether what is taken is within the budget."""
        with self._lock:
            return self._has(0)

    def _reserve(
        self, size_bytes: int, limits: Limits, beside_bytes: int, executable: Executable
    ) -> Room:
        with self._lock:
            while True:
                if self._closed:
                    raise InputError("The model was closed; load it again to run it.")
                room = self._free_room(size_bytes, beside_bytes, executable)
                if room is not None:
                    return room
                if self._book(size_bytes + beside_bytes):
                    break
                limits.check()
                self._changed.wait(POLL_S)
        made: list[Room] = []
        try:
            made.append(self._made(size_bytes, executable))
        finally:
            with self._lock:
                self._making -= 1
                self._used.extend(made)
                if not made:
                    self._taken_bytes -= size_bytes + beside_bytes
                self._changed.notify_all()
        return made[0]

    def _made(self, size_bytes: int, executable: Executable) -> Room:
        """A new block with an arena for a program."""
        room = Room(allocate(self._resource, size_bytes, "an arena"))
        room.arena(executable)
        return room

    def _free_room(self, size_bytes: int, beside_bytes: int, executable: Executable) -> Room | None:
        """A free block that is large enough, now reserved: one with the program's arena first."""
        fitting = [room for room in self._free if room.block.size_bytes >= size_bytes]
        if not fitting:
            return None
        room = fitting[0]
        if len(fitting) > 1:
            room = min(fitting, key=lambda r: (id(executable) not in r.arenas, r.block.size_bytes))
        self._free.remove(room)
        if not self._make_way(beside_bytes):
            self._free.append(room)
            return None
        self._taken_bytes += beside_bytes
        self._used.append(room)
        return room

    def _book(self, taken_bytes: int) -> bool:
        """Take a place and bytes for a block that will be made, if there are both."""
        while len(self._free) + len(self._used) + self._making >= self._capacity:
            if not self._free:
                return False
            self._drop(self._smallest())
        if not self._make_way(taken_bytes):
            return False
        self._making += 1
        self._taken_bytes += taken_bytes
        return True

    def _make_way(self, more_bytes: int) -> bool:
        """Give free blocks back until the budget has so many bytes left; whether it has."""
        while not self._has(more_bytes) and self._free:
            self._drop(self._smallest())
        return self._has(more_bytes)

    def _has(self, more_bytes: int) -> bool:
        return self._budget_bytes is None or self._taken_bytes + more_bytes <= self._budget_bytes

    def _smallest(self) -> Room:
        return min(self._free, key=lambda room: room.block.size_bytes)

    def _is_too_large(self, room: Room) -> bool:
        return self._largest_bytes is not None and room.block.size_bytes > self._largest_bytes

    def _drop(self, room: Room) -> None:
        self._free.remove(room)
        self._taken_bytes -= room.block.size_bytes

    def release(self, room: Room, beside_bytes: int) -> None:
        """Give back what `reserve` gave."""
        with self._lock:
            self._used.remove(room)
            self._free.append(room)
            self._taken_bytes -= beside_bytes
            if self._closed or self._is_too_large(room):
                self._drop(room)
            self._make_way(0)
            self._changed.notify_all()

    def close(self) -> None:
        """Give every block back, once no run has one."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()
            while self._used or self._making:
                self._changed.wait()
            self._free.clear()
