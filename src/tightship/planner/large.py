"""Placements for problems of many buffers: each takes close to linear time."""

from collections.abc import Callable, Iterator
from functools import partial

from tightship.planner.place import order
from tightship.planner.place.best_fit import best_fit
from tightship.planner.place.lowest_first import lowest_first, promote
from tightship.planner.problem import Int64Array, Problem

OrderOf = Callable[[Problem], Int64Array]

LARGE_COUNT = 5_000
"""From this many buffers on, placements that compare pairs of them take too long."""

PAIRS_PER_BUFFER = 200
"""What placing one buffer takes, in pairs of buffers looked at."""

ORDERS: dict[str, OrderOf] = {
    "load_and_reach": order.by_load_and_reach,
    "rough_load": order.by_rough_load,
    "load_and_start": order.by_load_and_start,
    "load": order.by_load,
    "size": order.by_size,
    "load_and_size": order.by_load_and_size,
    "area": order.by_area,
    "lifetime": order.by_lifetime,
    "stop": order.by_stop,
}
"""Orders for `lowest_first` and `promote` after the one by start, by the name a plan reports."""


def large_placements(problem: Problem, bound: int, effort: int) -> Iterator[tuple[str, Int64Array]]:
    """Placements with the names of their strategies, as far as the effort goes.

    Args:
        problem: n buffers.
        bound: The peak to reach, in bytes.
        effort: Pairs of buffers to look at; the first placement is made in any case.
    """
    left = effort // (PAIRS_PER_BUFFER * max(1, problem.count))
    singles: list[tuple[str, Callable[[], Int64Array]]] = [
        ("best_fit", partial(best_fit, problem)),
        ("lowest_first:start", partial(_ordered, problem, order.by_start)),
    ]
    for name, order_of in ORDERS.items():
        singles.append((f"lowest_first:{name}", partial(_ordered, problem, order_of)))
    for number, (strategy, place) in enumerate(singles):
        if number >= max(1, left):
            return
        yield strategy, place()
    rounds = (left - len(singles)) // len(ORDERS)
    if rounds > 1:
        for name, order_of in ORDERS.items():
            yield f"promote:{name}", promote(problem, order_of(problem), bound, rounds)


def _ordered(problem: Problem, order_of: OrderOf) -> Int64Array:
    return lowest_first(problem, order_of(problem))
