"""Smaller and smaller plans by exact search, and bounds that rise."""

from collections.abc import Iterator
from dataclasses import dataclass

from tightship._core import StopFlag
from tightship.planner.narrowing import Tried, narrow
from tightship.planner.place.exact import fit
from tightship.planner.problem import Int64Array, Problem


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

    Args:
        problem: n buffers.
        peak_bytes: Of the smallest plan known.
        bound_bytes: No plan has a smaller peak.
        effort: Pairs of buffers to look at, roughly.
        threads: How many threads may search at once.
        stop: Set from another thread, it ends the search.
    """

    def try_at(target: int, effort: int) -> Tried[Int64Array]:
        found = fit(problem, target, effort=effort, threads=threads, stop=stop)
        if found.verdict == "fits":
            peak = int((found.offset_bytes + problem.size_bytes).max())
            return Tried(found.offset_bytes, peak, found.effort)
        return Tried(None, found.bound_bytes or None, found.effort)

    for step in narrow(try_at, peak_bytes, bound_bytes, effort=effort, stop=stop):
        yield Step(step.found, step.bound)
