"""Improves plans by exact search, and raises their lower bounds."""

from collections.abc import Iterator
from dataclasses import dataclass

from tightship._core import StopFlag
from tightship.planner.narrowing import Tried, narrow
from tightship.planner.placements.exact import fit
from tightship.planner.problem import Int64Array, Problem


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Offsets with a smaller peak, and the lower bound proved so far."""

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
    """Search for plans below a peak until it meets the bound or the effort ends.

    Args:
        problem: n buffers.
        peak_bytes: Peak of the smallest plan known.
        bound_bytes: A lower bound on the peak of every plan.
        effort: Pairs of buffers to compare, roughly.
        threads: Threads that may search at once; 1 by default.
        stop: Flag that ends the search when another thread sets it.

    Yields:
        A step for each smaller plan and each higher bound.
    """

    def try_at(target: int, effort: int) -> Tried[Int64Array]:
        found = fit(problem, target, effort=effort, threads=threads, stop=stop)
        if found.verdict == "fits":
            peak = int((found.offset_bytes + problem.size_bytes).max())
            return Tried(found.offset_bytes, peak, found.effort)
        return Tried(None, found.bound_bytes or None, found.effort)

    for step in narrow(try_at, peak_bytes, bound_bytes, effort=effort, stop=stop):
        yield Step(step.found, step.bound)
