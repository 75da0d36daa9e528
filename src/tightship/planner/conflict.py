"""Why a capacity cannot be met: few buffers that already exceed it."""

from dataclasses import replace

import numpy as np

from tightship._core import StopFlag
from tightship.planner.place.exact import fit
from tightship.planner.plan import Conflict
from tightship.planner.problem import Int64Array, Problem


def smallest_conflict(
    problem: Problem,
    capacity_bytes: int,
    buffers: Int64Array,
    *,
    effort: int,
    stop: StopFlag | None = None,
) -> Conflict:
    """Leave out buffers of a conflict one after another, as long as the rest do not fit.

    The result says that it is minimal if whatever one leaves out of it, the rest do fit.

    Args:
        problem: n buffers.
        capacity_bytes: What they exceed.
        buffers: Indices of buffers that do not fit together.
        effort: Pairs of buffers to look at, roughly, in all.
        stop: Set from another thread, it ends the search.
    """
    kept = buffers
    is_minimal = True
    for buffer in sorted(buffers.tolist(), key=lambda index: int(problem.size_bytes[index])):
        if buffer not in kept:
            continue
        rest = kept[kept != buffer]
        found = fit(_part(problem, rest), capacity_bytes, effort=effort, stop=stop)
        effort = max(0, effort - found.effort)
        if found.verdict == "infeasible":
            kept = rest[found.conflict]
        is_minimal = is_minimal and found.verdict != "open"
    return Conflict(tuple(kept.tolist()), is_minimal)


def _part(problem: Problem, buffers: Int64Array) -> Problem:
    chosen = np.asarray(buffers, np.int64)
    return replace(
        problem,
        size_bytes=problem.size_bytes[chosen],
        start_step=problem.start_step[chosen],
        stop_step=problem.stop_step[chosen],
        alignment=problem.alignment[chosen],
        names=None,
    )
