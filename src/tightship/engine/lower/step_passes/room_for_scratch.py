"""Finds the room for scratch of Winograd's algorithm where more would make a plan larger."""

import numpy as np

from tightship.engine.program.program import Lowered
from tightship.engine.program.schedule import ALIGNMENT, schedule_of
from tightship.planner.liveness import problem_of


def room_for_scratch(lowered: Lowered) -> dict[str, int]:
    """Return the bytes of scratch that steps may have that exceed the peak without any.

    A direct convolution has no scratch, so no plan grows by a choice of speed if these steps keep
    within their room.
    """
    own = np.array(
        [s.scratch_bytes if s.implementation == "winograd" else 0 for s in lowered.steps], np.int64
    )
    own = -(-own // ALIGNMENT) * ALIGNMENT
    if not own.any():
        return {}
    problem = problem_of(schedule_of(lowered)).problem
    sizes = -(-problem.size_bytes // ALIGNMENT) * ALIGNMENT
    changes = np.zeros(len(own) + 1, np.int64)
    np.add.at(changes, problem.start_step, sizes)
    np.subtract.at(changes, problem.stop_step, sizes)
    without = np.cumsum(changes)[:-1] - own
    room = int(without.max()) - without
    return {
        step.name: there
        for step, scratch, there in zip(lowered.steps, own.tolist(), room.tolist(), strict=True)
        if scratch > there
    }
