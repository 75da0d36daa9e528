"""Why a capacity cannot be met: few buffers that already exceed it."""

from tightship._core import StopFlag
from tightship.planner.part import part_of
from tightship.planner.place.exact import Fit, fit
from tightship.planner.place.exact_items import ItemFit, ItemSearch, Within
from tightship.planner.plan import Conflict
from tightship.planner.problem import Int64Array, Problem


def smallest_conflict(
    problem: Problem,
    capacity_bytes: int | None,
    buffers: Int64Array,
    *,
    effort: int,
    stop: StopFlag | None = None,
) -> Conflict:
    """Leave out buffers of a conflict one after another, as long as the rest do not fit.

    The result says that it is minimal if whatever one leaves out of it, the rest do fit.

    Args:
        problem: n buffers.
        capacity_bytes: What they exceed; None where that are the capacities of banks.
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
        found = _fit(part_of(problem, rest), capacity_bytes, effort, stop)
        effort = max(0, effort - found.effort)
        if found.verdict == "infeasible":
            kept = rest[found.conflict]
        is_minimal = is_minimal and found.verdict != "open"
    return Conflict(tuple(kept.tolist()), is_minimal)


def _fit(
    problem: Problem, capacity_bytes: int | None, effort: int, stop: StopFlag | None
) -> Fit | ItemFit:
    if problem.constraints is None:
        assert capacity_bytes is not None
        return fit(problem, capacity_bytes, effort=effort, stop=stop)
    within = Within(peak_bytes=capacity_bytes)
    return ItemSearch(problem).fit(within, effort=effort, stop=stop)
