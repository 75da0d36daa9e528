"""Arenas kept for reuse: each run reserves one and releases it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from tightship._core import HostBlock, NativeContext
from tightship.engine.executable import Executable, PythonStep, allocate
from tightship.engine.limits import Limits
from tightship.engine.program import Operand, Space
from tightship.errors import InputError
from tightship.resource import HostResource

Array = NDArray[np.generic]

POLL_S = 0.02
"""How often a waiting run looks at its limits."""


class Arena:
    """One run's memory: the block, the native operands in it, and arrays over it."""

    def __init__(self, executable: Executable, resource: HostResource) -> None:
        placement = executable.placement
        self.block: HostBlock = allocate(resource, placement.arena_bytes, "an arena")
        self.context = (
            NativeContext(executable.native, self.block.address) if executable.native else None
        )
        self.scratch: dict[int, Array] = {}
        self._bytes = {
            Space.ARENA: self.block.array(),
            Space.WEIGHTS: executable.weights.array(),
        }
        self._arrays: dict[tuple[Space, int, tuple[int, ...]], Array] = {}
        for segment in executable.segments:
            if isinstance(segment, PythonStep):
                self._add_arrays(executable, segment)

    def _add_arrays(self, executable: Executable, segment: PythonStep) -> None:
        placement = executable.placement
        for operand in (*segment.step.reads, *segment.step.writes):
            if operand.space in self._bytes:
                offset = placement.offset_of(operand)
                room = self._bytes[operand.space][offset : offset + operand.size_bytes]
                array = room.view(operand.dtype.numpy).reshape(operand.shape)
                array.flags.writeable = operand.space is Space.ARENA
                self._arrays[operand.space, operand.index, operand.shape] = array
        scratch = placement.schedule_plan.scratch_offset(segment.index)
        if scratch is not None:
            size = segment.step.scratch_bytes
            self.scratch[segment.index] = self._bytes[Space.ARENA][scratch : scratch + size]

    def array(self, operand: Operand) -> Array:
        """A planned operand of a Python step, row-major."""
        return self._arrays[operand.space, operand.index, operand.shape]


class ArenaPool:
    """At most `capacity` arenas; a run that finds none free waits for one.

    Every arena is either free or reserved by one run.
    """

    def __init__(self, executable: Executable, resource: HostResource, capacity: int) -> None:
        self.executable = executable
        self._resource = resource
        self._free: list[Arena] = [Arena(executable, resource)]
        self._reserved = 0
        self._unmade = capacity - 1
        self._closed = False
        self._changed = threading.Condition()

    @contextmanager
    def reserved(self, limits: Limits) -> Iterator[Arena]:
        """An arena for the length of a `with` block.

        Raises:
            StoppedError: The limits' stop flag was set while none was free.
            DeadlineError: Their deadline passed while none was free.
            InputError: The pool is closed.
            OutOfMemoryError: A further arena cannot be allocated.
        """
        arena = self._reserve(limits)
        try:
            yield arena
        finally:
            self._release(arena)

    def _reserve(self, limits: Limits) -> Arena:
        with self._changed:
            while not self._free and self._unmade <= 0 and not self._closed:
                limits.check()
                self._changed.wait(POLL_S)
            if self._closed:
                raise InputError("The model was closed; load it again to run it.")
            self._reserved += 1
            if self._free:
                return self._free.pop()
            self._unmade -= 1
        arena: Arena | None = None
        try:
            arena = Arena(self.executable, self._resource)
        finally:
            if arena is None:
                self._unmake()
        return arena

    def _unmake(self) -> None:
        """Take back the reservation of an arena that could not be made."""
        with self._changed:
            self._reserved -= 1
            self._unmade += 1
            self._changed.notify_all()

    def _release(self, arena: Arena) -> None:
        with self._changed:
            self._reserved -= 1
            self._free.append(arena)
            self._changed.notify_all()

    def close(self) -> None:
        """Give every arena back, once no run has one."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            while self._reserved:
                self._changed.wait()
            self._free.clear()
