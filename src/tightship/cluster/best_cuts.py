"""Finds the cuts with the least bytes across them, each stage within the budget of its node.

Every stage gets a node of its own; nodes may be left out and come in any order. The search is exact
over a table of bytes by stage: dynamic programming over the nodes that are used and the cut that
they reach.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tightship.cluster.cut_table import Integers

UNREACHED = np.iinfo(np.int64).max // 4
BUDGETS_MAX = 10
"""Most nodes of a search, which takes time exponential in their number."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """Chosen stages, as pairs of indices of cuts, with the budget that each is within.

    Attributes:
        stages: Pairs `(a, b)`: a stage from cut a to cut b.
        budgets: Index of a budget for each stage.
        crossing_bytes: Sum of what crosses each cut between two stages.
        largest_bytes: Bytes of the largest stage.
    """

    stages: tuple[tuple[int, int], ...]
    budgets: tuple[int, ...]
    crossing_bytes: int
    largest_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class _Reached:
    """Best way to reach each cut with one set of nodes; arrays of shape (p,)."""

    crossing: Integers
    largest: Integers
    before: Integers
    budget: Integers


def best_cuts(stage_bytes: Integers, crossing: Integers, budgets: Sequence[int]) -> Cuts | None:
    """Return the cuts with least bytes across, then with the least largest stage; None if none.

    Args:
        stage_bytes: Bytes of the stage between each two cuts; shape (p, p), used for a < b.
        crossing: Bytes that cross each cut; shape (p,).
        budgets: Bytes that each node has for a stage, at most `BUDGETS_MAX`.

    Complexity: O(2^n n p^2) for n budgets.
    """
    count, last = len(crossing), len(crossing) - 1
    assert len(budgets) <= BUDGETS_MAX, budgets
    start = np.full(count, UNREACHED, np.int64)
    start[0] = 0
    nothing = np.full(count, -1, np.int64)
    reached = {0: _Reached(start, np.where(start == 0, 0, UNREACHED), nothing, nothing)}
    is_stage = np.triu(np.ones((count, count), bool), 1)
    allowed = [is_stage & (stage_bytes <= budget) for budget in budgets]
    for used in range(1, 1 << len(budgets)):
        reached[used] = _extended(reached, used, stage_bytes, crossing, allowed)
    ends = [(int(way.crossing[last]), int(way.largest[last]), used)
            for used, way in reached.items()]  # fmt: skip
    total, largest, used = min(ends)
    if total >= UNREACHED:
        return None
    stages, chosen, cut = [], [], last
    while used:
        way = reached[used]
        budget, before = int(way.budget[cut]), int(way.before[cut])
        stages.append((before, cut))
        chosen.append(budget)
        used, cut = used & ~(1 << budget), before
    return Cuts(tuple(reversed(stages)), tuple(reversed(chosen)), total, largest)


def _extended(
    reached: dict[int, _Reached],
    used: int,
    stage_bytes: Integers,
    crossing: Integers,
    allowed: Sequence[np.ndarray[tuple[int, ...], np.dtype[np.bool_]]],
) -> _Reached:
    """Reach each cut with exactly these nodes, of which each in turn holds the last stage."""
    count = len(crossing)
    best = _Reached(*(np.full(count, value, np.int64) for value in (UNREACHED, UNREACHED, -1, -1)))
    columns = np.arange(count)
    for budget, fits in enumerate(allowed):
        if not used >> budget & 1:
            continue
        way = reached[used & ~(1 << budget)]
        across = np.minimum(way.crossing + crossing, UNREACHED)
        total = np.where(fits, across[:, None], UNREACHED)
        least = total.min(axis=0)
        is_least = (total == least) & (least < UNREACHED)
        largest = np.where(is_least, np.maximum(way.largest[:, None], stage_bytes), UNREACHED)
        before = largest.argmin(axis=0)
        found = largest[before, columns]
        is_better = (least < best.crossing) | ((least == best.crossing) & (found < best.largest))
        is_better &= least < UNREACHED
        best.crossing[is_better] = least[is_better]
        best.largest[is_better] = found[is_better]
        best.before[is_better] = before[is_better]
        best.budget[is_better] = budget
    return best
