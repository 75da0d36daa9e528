"""Runs an executable: binds operands, then runs native segments and Python steps in order."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.engine.run.arena import Arena, FixedArrays
from tightship.engine.run.executable import Executable, NativeSegment
from tightship.engine.run.limits import Limits
from tightship.engine.run.native_run import run_native

Array = NDArray[np.generic]


def execute(
    executable: Executable,
    arena: Arena,
    external: Mapping[int, Array],
    objects: dict[str, Any],
    limits: Limits,
    ends_ns: NDArray[np.int64] | None = None,
    fixed: FixedArrays | None = None,
) -> None:
    """Run every step once.

    Args:
        executable: Program to run.
        arena: Memory to run it in, used by no other run meanwhile.
        external: Row-major arrays for the slots of inputs and outputs.
        objects: Values outside every plan by name; those of outputs remain in it.
        limits: Limits on time, unplanned bytes and concurrent steps.
        ends_ns: Array for the time of `time.monotonic_ns` after each step; needs a single worker.
        fixed: Arrays for the other slots, which are the same in many runs.

    Raises:
        StoppedError: The stop flag was set, before a step or an iteration of a loop.
        DeadlineError: The deadline passed, before a step or an iteration of a loop.
        OutOfMemoryError: A step outside the plan would exceed its bound.
        GraphError: A reference kernel refuses its operands.
        InputError: An input has elements that an operator cannot take, such as an invalid index.
    """
    arena.bind(external, fixed)
    if arena.sized is not None:
        from tightship.engine.run.sized_run import execute_sized

        arrays = _together(external, fixed)
        execute_sized(executable, arena, arrays, objects, limits, ends_ns)
        return
    done, run = 0, None
    try:
        for segment in executable.segments:
            if isinstance(segment, NativeSegment):
                count = segment.last - segment.first
                ends = None if ends_ns is None else ends_ns[done : done + count]
                run_native(executable, arena, segment, limits, ends)
                done += count
            else:
                limits.check()
                if run is None:
                    from tightship.engine.run.python_run import PythonRun  # few programs need it

                    threads = executable.placement.lowered.threads
                    run = PythonRun(arena, _together(external, fixed), objects, limits, threads)
                run.step(segment)
                if ends_ns is not None:
                    ends_ns[done] = time.monotonic_ns()
                done += 1
        if objects:
            from tightship.engine.run.python_run import dense

            for name, value in objects.items():
                objects[name] = dense(value)
    finally:
        if run is not None:
            run.end()


def _together(external: Mapping[int, Array], fixed: FixedArrays | None) -> Mapping[int, Array]:
    return {**fixed.arrays, **external} if fixed else external
