"""Explains why a capacity is too small: finds few buffers that already exceed it."""

from tightship._core import StopFlag
from tightship.planner.part import part_of
from tightship.planner.placements.exact import Fit, fit
from tightship.planner.placements.exact_items import ItemFit, ItemSearch, Within
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
    """Remove buffers from a conflict one after another, as long as the rest do not fit.

    Args:
        problem: n buffers.
        capacity_bytes: The capacity that the buffers exceed; None if they exceed those of banks.
        buffers: Indices of buffers that do not fit together.
        effort: Pairs of buffers to compare in all, roughly.
        stop: Flag that ends the search when another thread sets it.

    Returns:
        The remaining conflict; it is marked minimal if the rest fit whichever buffer is left out.
    """
    kept = buffers
    is_minimal = True
    # Smallest first, so that a few large buffers remain as the explanation.
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
