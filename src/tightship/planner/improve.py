"""Smaller and smaller plans by exact search, and bounds that rise."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from tightship._core import StopFlag
from tightship.planner.place.exact import fit
from tightship.planner.problem import Int64Array, Problem

BOUND_SHARE = 2
"""The first search, for the bound itself, may take one part in so many of the effort."""

FIRST_SHARE = 4
"""Each search of the next round may take one part in so many of what is left."""

STEPS = 4
"""How often a round halves the distance between what is open and what is placed."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Offsets of a smaller peak, and the bound that is proved by now."""

    offset_bytes: Int64Array | None
    bound_bytes: int


def improve(
    problem: Problem,
    peak_bytes: int,
    bound_bytes: int,
    *,
    effort: int,
    threads: int = 1,
    stop: StopFlag | None = None,
) -> Iterator[Step]:
    """Search below a peak until it meets the bound, or the effort ends.

    The bound itself is tried first. Where that stays open, capacities between it and the peak
    are, each time half as far from the last that stayed open; the next round may take twice the
    effort for each.

    Args:
        problem: n buffers.
        peak_bytes: Of the smallest plan known.
        bound_bytes: No plan has a smaller peak.
        effort: Pairs of buffers to look at, roughly.
        threads: How many threads may search at once.
        stop: Set from another thread, it ends the search.
    """
    share = max(1, effort // BOUND_SHARE)
    still_open = target = bound_bytes
    for turn in count():
        if effort <= 0 or (stop and stop.is_set()):
            return
        found = fit(problem, target, effort=min(share, effort), threads=threads, stop=stop)
        effort -= max(found.effort, 1)
        if found.verdict == "fits":
            peak_bytes = int((found.offset_bytes + problem.size_bytes).max())
            yield Step(found.offset_bytes, bound_bytes)
        elif found.verdict == "infeasible":
            bound_bytes = min(found.bound_bytes, peak_bytes)
            yield Step(None, bound_bytes)
        else:
            still_open = target
        if peak_bytes <= bound_bytes:
            return
        if turn % STEPS == 0:
            share = max(1, effort // FIRST_SHARE) if turn == 0 else 2 * share
            still_open = bound_bytes
        still_open = max(still_open, bound_bytes)
        target = still_open + (peak_bytes - still_open) // 2
