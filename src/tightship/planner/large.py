"""Places problems of many buffers, by methods whose time is close to linear."""

from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter

import numpy as np

from tightship.planner.placements import order
from tightship.planner.placements.in_one_order import best_fit, lowest_first, promote
from tightship.planner.problem import TOTAL_BYTES_MAX, Int64Array, Problem
from tightship.planner.repair import repair

OrderOf = Callable[[Problem], Int64Array]

LARGE_COUNT = 5_000
"""Number of buffers from which on placements that compare pairs of buffers take too long."""

PAIRS_PER_BUFFER = 200
"""Estimated effort of placing one buffer, in pairs of buffers compared."""

ORDERS: dict[str, OrderOf] = {
    "load_and_reach": order.by_load_and_reach,
    "rough_load": order.by_rough_load,
    "half_and_load": order.by_share_and_load,
    "load_and_half": order.by_load_and_share,
    "twentieth_and_load": partial(order.by_share_and_load, parts=20),
    "load_and_start": order.by_load_and_start,
    "load": order.by_load,
    "size": order.by_size,
    "load_and_size": order.by_load_and_size,
    "area": order.by_area,
    "lifetime": order.by_lifetime,
    "stop": order.by_stop,
}
"""Orders for `lowest_first` and `promote`, tried after the one by start, by reported name."""

REPAIRED_AFTER = (3, 2 + len(ORDERS))
"""Numbers of placements after which the best of them is repaired."""


def large_placements(problem: Problem, bound: int, effort: int) -> Iterator[tuple[str, Int64Array]]:
    """Yield placements with the names of their strategies, until the effort is used up.

    Args:
        problem: n buffers.
        bound: The peak to reach, in bytes.
        effort: Pairs of buffers to compare; the first placement is made in any case.
    """
    each = PAIRS_PER_BUFFER * max(1, problem.count)
    left = effort
    best = ("", np.zeros(0, np.int64), 2 * TOTAL_BYTES_MAX)
    for number, (name, place) in enumerate(_single_placements(problem), 1):
        if number > 1 and left < each:
            return
        left -= each
        offset_bytes = place()
        yield name, offset_bytes
        peak = int((offset_bytes + problem.size_bytes).max(initial=0))
        best = min(best, (name, offset_bytes, peak), key=itemgetter(2))
        if number in REPAIRED_AFTER and left > 0:
            repaired, spent = repair(problem, best[1], bound, effort=left)
            left -= spent
            yield f"{best[0]}+repair", repaired
    # Promotion takes what is left of the effort, in equal parts for all orders.
    rounds = left // (each * len(ORDERS))
    if rounds > 1:
        for name, order_of in ORDERS.items():
            yield f"promote:{name}", promote(problem, order_of(problem), bound, rounds)


def _single_placements(problem: Problem) -> Iterator[tuple[str, Callable[[], Int64Array]]]:
    yield "best_fit", partial(best_fit, problem)
    yield "lowest_first:start", partial(_ordered, problem, order.by_start)
    for name, order_of in ORDERS.items():
        yield f"lowest_first:{name}", partial(_ordered, problem, order_of)


def _ordered(problem: Problem, order_of: OrderOf) -> Int64Array:
    return lowest_first(problem, order_of(problem))
