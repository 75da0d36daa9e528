"""Runs of programs that have steps whose shapes only the run knows: most of them in the core.

The core goes on until a step has no operator of its own, or one that leaves the operands that came.
Python runs that step, and the core goes on behind it.
"""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship._core import KernelError
from tightship.engine.program.program import Space
from tightship.engine.run.arena import Arena
from tightship.engine.run.executable import Executable, NativeSegment
from tightship.engine.run.limits import Limits, end
from tightship.engine.run.native_run import run_native
from tightship.engine.run.python_run import PythonRun, dense
from tightship.engine.run.sized_steps import SizedSteps
from tightship.errors import InputError

Array = NDArray[np.generic]


class SizedRun(PythonRun):
    """Python steps of a run, whose objects are values of the core as far as these are arrays."""

    def __init__(
        self,
        arena: Arena,
        external: Mapping[int, Array],
        objects: dict[str, Any],
        limits: Limits,
        threads: int,
        steps: SizedSteps,
    ) -> None:
        """Bind the arrays of this run."""
        super().__init__(arena, external, objects, limits, threads)
        if limits.dynamic is not None:
            self.memory = limits.dynamic.begin()
        assert arena.sized is not None
        self.values, self.numbers = arena.sized, steps.objects
        for operand, number in steps.planned:
            if operand.space is Space.EXTERNAL:
                self.values.bind(number, self.planned(operand))
        for name, value in objects.items():
            if name in self.numbers:
                self.values.set(self.numbers[name], value)

    def found(self, name: str) -> Any:  # noqa: ANN401
        """Return an object, or the array of a value."""
        if name in self.objects:
            return self.objects[name]
        return self.values.get(self.numbers[name])

    def store(self, name: str, value: Any) -> None:  # noqa: ANN401
        """Keep an array as a value; any other object, and one with gaps, as it is."""
        is_value = name in self.numbers and isinstance(value, np.ndarray)
        if not is_value or not self.values.set(self.numbers[name], value):
            self.objects[name] = value

    def drop(self, name: str) -> None:
        """Drop an object; the caller releases values."""
        self.objects.pop(name, None)


def execute_sized(
    executable: Executable,
    arena: Arena,
    external: Mapping[int, Array],
    objects: dict[str, Any],
    limits: Limits,
    ends_ns: NDArray[np.int64] | None,
) -> None:
    """Run every step once; arguments and errors are those of `execute`."""
    assert arena.sized is not None
    assert executable.sized is not None
    threads = executable.placement.lowered.threads
    run = SizedRun(arena, external, objects, limits, threads, executable.sized)
    try:
        if ends_ns is None:
            _run(run, executable)
        else:
            _timed(run, executable, ends_ns)
        for name, operand in executable.placement.lowered.outputs.items():
            if operand.space is Space.OBJECT:
                objects[name] = dense(run.found(operand.name))
    finally:
        arena.sized.clear()
        run.end()


def _run(run: SizedRun, executable: Executable) -> None:
    place, count = 0, len(executable.segments)
    runs_planned = run.limits.workers == 1
    while (place := _core(run, place, count, runs_planned=runs_planned)) < count:
        _step(run, executable, place, None)
        place += 1


def _timed(run: SizedRun, executable: Executable, ends_ns: NDArray[np.int64]) -> None:
    """Run the segments one by one; the time after each of their steps is written to `ends_ns`."""
    done = 0
    for place, segment in enumerate(executable.segments):
        is_native = isinstance(segment, NativeSegment)
        count = segment.last - segment.first if isinstance(segment, NativeSegment) else 1
        if is_native or _core(run, place, place + 1, runs_planned=False) == place:
            _step(run, executable, place, ends_ns[done : done + count])
        if not is_native:
            ends_ns[done] = time.monotonic_ns()
        done += count


def _core(run: SizedRun, first: int, last: int, *, runs_planned: bool) -> int:
    """Run steps in the core up to one that it leaves; return its place, or `last`."""
    limits = run.limits
    try:
        place, outcome = run.values.run(
            (first, last), runs_planned, limits.stop, limits.deadline_ns, run.memory,
            run.threads,
        )  # fmt: skip
    except KernelError as error:
        raise InputError(str(error)) from None
    end(outcome)
    return place


def _step(
    run: SizedRun, executable: Executable, place: int, ends_ns: NDArray[np.int64] | None
) -> None:
    segment = executable.segments[place]
    if isinstance(segment, NativeSegment):
        run_native(executable, run.arena, segment, run.limits, ends_ns)
    else:
        run.limits.check()
        run.step(segment)
        run.values.release(place)
