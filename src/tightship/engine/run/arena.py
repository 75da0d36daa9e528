"""A program's view of the memory that it runs in."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tightship._core import FixedOperands, NativeContext, NativeStepGraph, SizedContext
from tightship.engine.program.program import Operand, Space
from tightship.engine.run.executable import Executable, NativeSegment, PythonStep

Array = NDArray[np.generic]


class Memory(Protocol):
    """Memory at an address: a block, or a range that grows."""

    @property
    def address(self) -> int:
        """Address of the first byte."""

    @property
    def size_bytes(self) -> int:
        """Bytes that may be touched."""

    def array(self) -> NDArray[np.uint8]:
        """Return these bytes."""


class FixedArrays:
    """Arrays of inputs and outputs that are the same in many runs of a program.

    An arena that has them bound does not bind them again.

    Attributes:
        arrays: Row-major arrays by slot.
        operands: Their addresses.
    """

    __slots__ = ("arrays", "operands")

    def __init__(self, arrays: Mapping[int, Array]) -> None:
        """Keep the arrays, which must stay where they are."""
        self.arrays, self.operands = arrays, FixedOperands(dict(arrays))


class Arena:
    """A program's view of one block: bound native operands, and arrays for Python steps."""

    def __init__(self, executable: Executable, block: Memory) -> None:
        """Bind to `block`, of at least the executable's `arena_bytes`, at an address that stays."""
        self.block = block
        self.context = (
            NativeContext(executable.native, block.address) if executable.native else None
        )
        self._step_graphs: Mapping[NativeSegment, NativeStepGraph] | None = None
        self.scratch: dict[int, Array] = {}
        self._arrays: dict[tuple[Space, int, int, tuple[int, ...]], Array] = {}
        python_steps = [s for s in executable.segments if isinstance(s, PythonStep)]
        if python_steps:
            room = block.array()
            for segment in python_steps:
                self._add_arrays(executable, segment, room)
        self.sized = self._sized(executable)

    def _sized(self, executable: Executable) -> SizedContext | None:
        """Bind the planned values of steps whose shapes only the run knows."""
        if executable.sized is None:
            return None
        context = SizedContext(executable.sized.program, self.context)
        for operand, number in executable.sized.planned:
            if operand.space is not Space.EXTERNAL:
                context.bind(number, self.array(operand))
        return context

    def bind(self, external: Mapping[int, Array], fixed: FixedArrays | None) -> None:
        """Bind arrays to the slots of inputs and outputs for the next run.

        Args:
            external: Arrays that this run brings, by slot.
            fixed: Further ones, bound already if they were those of the last run.
        """
        if self.context is None:
            return
        self.context.bind_fixed(None if fixed is None else fixed.operands)
        for slot, array in external.items():
            self.context.bind_external(slot, array)

    def step_graphs(self, executable: Executable) -> Mapping[NativeSegment, NativeStepGraph]:
        """Return the dependencies of native steps for concurrent execution; made on first use."""
        if self._step_graphs is None:
            from tightship.engine.run.step_graph import step_graphs

            self._step_graphs = step_graphs(executable)
        return self._step_graphs

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
        """Return a planned operand of a Python step, row-major."""
        return self._arrays[_key(operand)]


def _key(operand: Operand) -> tuple[Space, int, int, tuple[int, ...]]:
    return operand.space, operand.slot, operand.offset_bytes, operand.shape


class Reserved(Protocol):
    """Memory that a run has reserved; it is given back to its pool."""

    def arena(self, executable: Executable) -> Arena:
        """Return the program's arena in it."""


class Arenas:
    """Arenas of programs in one memory at an address that stays, each made on first use."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._arenas: dict[int, tuple[Executable, Arena]] = {}

    def __contains__(self, executable: Executable) -> bool:
        return id(executable) in self._arenas

    def of(self, executable: Executable) -> Arena:
        """Return a program's arena; the memory must be large enough for it."""
        found = self._arenas.get(id(executable))
        if found is None:
            made = executable, Arena(executable, self._memory)
            found = self._arenas.setdefault(id(executable), made)
        return found[1]

    def forget(self, executable: Executable) -> None:
        """Drop the arena of a program that is not running."""
        self._arenas.pop(id(executable), None)
