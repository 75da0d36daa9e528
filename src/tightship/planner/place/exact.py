"""Whether buffers fit a capacity, decided by search."""

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from tightship._core import StopFlag, search_fit
from tightship.planner.problem import Int64Array, Problem

Verdict = Literal["fits", "infeasible", "open"]
"""`fits`: here is where. `infeasible`: no placement fits. `open`: the effort ran out before."""

FREE = -1
"""The pin of a buffer that has none."""

NO_PINS: Int64Array = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What a search found out about a problem and a capacity.

    `offset_bytes` is of shape (n,) if the verdict is `fits`, else empty. `conflict` holds the
    indices of buffers that do not fit together, rising, if it is `infeasible`, else nothing.
    `bound_bytes` is then a peak below which no placement exists, else 0. `effort` is what was
    spent.
    """

    verdict: Verdict
    offset_bytes: Int64Array
    conflict: Int64Array
    bound_bytes: int
    effort: int


def fit(
    problem: Problem,
    capacity_bytes: int,
    *,
    effort: int,
    threads: int = 1,
    stop: StopFlag | None = None,
    pins: Int64Array = NO_PINS,
) -> Fit:
    """Place buffers within a capacity, or prove that it cannot be done.

    Buffers are placed from the floor up, each where it comes to rest. A failed attempt is traced
    to the buffers that caused it; decisions that did not touch these are not tried again.
    Attempts start over from time to time, in orders that put forward what was in the way. The
    answer depends on problem, capacity and effort alone, as long as nobody sets `stop`.

    Args:
        problem: n buffers; its own capacity is not looked at.
        capacity_bytes: What every buffer must end within.
        effort: Pairs of buffers to look at, roughly.
        threads: How many threads may search at once; two have work.
        stop: Set from another thread, it ends the search with the verdict `open`.
        pins: Where each buffer has to lie, `FREE` for anywhere; shape (n,), or empty if all are
            free. Pinned buffers are disjoint and within the capacity. Verdict, conflict and bound
            are then about placements that keep to them.

    Complexity: exponential in n at worst, within the effort; O(sum of live buffers) space.
    Source: canonical placements as in Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
    Hardware-Accelerated Machine Learning", 2023; back-jumping as in Prosser, "Hybrid Algorithms
    for the Constraint Satisfaction Problem", 1993; blame as in Boussemart, Hemery, Lecoutre,
    Sais, "Boosting Systematic Search by Weighting Constraints", 2004.
    """
    found = search_fit(problem.columns(), pins, capacity_bytes, effort, threads, stop)
    verdict = cast(Verdict, found.verdict)
    return Fit(verdict, found.offsets, found.conflict, found.bound, found.effort)
