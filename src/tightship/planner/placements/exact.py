"""Decides by search whether buffers fit a capacity."""

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from tightship._core import StopFlag, search_fit
from tightship.planner.problem import Int64Array, Problem

Verdict = Literal["fits", "infeasible", "open"]
"""`fits`: offsets were found. `infeasible`: none exist. `open`: the effort ended before a proof."""

FREE = -1
"""Stands for the pin of a buffer that has none."""

NO_PINS: Int64Array = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The result of a search for a placement within a capacity.

    Attributes:
        verdict: Whether a placement was found, excluded, or neither.
        offset_bytes: Offsets of shape (n,) if the verdict is `fits`, otherwise empty.
        conflict: Indices of buffers that do not fit together, in increasing order, if the verdict
            is `infeasible`, otherwise empty.
        bound_bytes: A peak below which no placement exists if the verdict is `infeasible`,
            otherwise 0.
        effort: Pairs of buffers that were compared.
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

    Buffers are placed from the bottom up, each as low as it can lie. A failed attempt is traced to
    the buffers that caused it, and decisions that did not involve these are skipped. The search
    restarts from time to time, in orders that prefer the buffers that caused failures. The answer
    depends only on problem, capacity and effort, unless `stop` is set.

    Args:
        problem: n buffers; its own capacity is ignored.
        capacity_bytes: Highest end that a buffer may have.
        effort: Pairs of buffers to compare, roughly.
        threads: Threads that may search at once; 1 by default, and more than 2 do not help.
        stop: Flag that ends the search with the verdict `open` when another thread sets it.
        pins: Required offset of each buffer, `FREE` for any; shape (n,), or empty if all are free.
            Pinned buffers must be disjoint and within the capacity. Verdict, conflict and bound
            are then about placements with these pins.

    Returns:
        The verdict, with offsets, or with a conflict and a bound.

    Complexity: exponential in n at worst, within the effort; O(sum of live buffers) space.
    Source: canonical placements as in Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
    Hardware-Accelerated Machine Learning", 2023; back-jumping as in Prosser, "Hybrid Algorithms
    for the Constraint Satisfaction Problem", 1993; blame as in Boussemart, Hemery, Lecoutre,
    Sais, "Boosting Systematic Search by Weighting Constraints", 2004.
    """
    found = search_fit(problem.columns(), pins, capacity_bytes, effort, threads, stop)
    verdict = cast(Verdict, found.verdict)
    return Fit(verdict, found.offsets, found.conflict, found.bound, found.effort)
