"""Native segments of a run, one step after another or several at once."""

import numpy as np
from numpy.typing import NDArray

from tightship._core import KernelError
from tightship.engine.run.arena import Arena
from tightship.engine.run.executable import Executable, NativeSegment
from tightship.engine.run.limits import Limits, end
from tightship.errors import InputError


def run_native(
    executable: Executable,
    arena: Arena,
    segment: NativeSegment,
    limits: Limits,
    ends_ns: NDArray[np.int64] | None,
) -> None:
    """Run a segment.

    Args:
        executable: Program of the segment.
        arena: Memory that it is bound to.
        segment: Steps to run.
        limits: Limits on time and concurrent steps.
        ends_ns: Array for the time after each step; needs a single worker.

    Raises:
        StoppedError, DeadlineError: The run must end.
        InputError: An input has elements that an operator cannot take.
    """
    context = arena.context
    assert context is not None
    stop, deadline_ns = limits.stop, limits.deadline_ns
    try:
        if limits.workers > 1:
            graph = arena.step_graphs(executable)[segment]
            end(context.run_at_once(graph, limits.workers, stop, deadline_ns))
        else:
            end(context.run((segment.first, segment.last), stop, deadline_ns, ends_ns))
    except KernelError as error:
        raise InputError(str(error)) from None
