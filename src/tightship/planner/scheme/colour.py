"""Colours the conflict graph: values of one colour share a block."""

from collections.abc import Callable, Mapping

import numpy as np

from tightship.planner.liveness import problem_of
from tightship.planner.placements.order import by_size, by_start
from tightship.planner.problem import Int64Array, Problem
from tightship.planner.schedule import Schedule
from tightship.planner.scheme.blocks import Blocks, block_sizes
from tightship.planner.scheme.reference_count import buffers_in_place

ORDERS: Mapping[str, Callable[[Problem], Int64Array]] = {"size": by_size, "start": by_start}
"""Orders in which buffers get colours. Largest first needs few bytes; by start needs the fewest
colours, because lifetimes are intervals."""


def conflicts(problem: Problem, buffer: int) -> Int64Array:
    """Return indices of the other buffers that are live in a step of `buffer`, increasing."""
    start, stop = problem.start_step[buffer], problem.stop_step[buffer]
    live = (problem.start_step < stop) & (problem.stop_step > start)
    live[buffer] = False
    return np.flatnonzero(live)


def colour(schedule: Schedule, *, in_place: bool = True, order: str = "size") -> Blocks:
    """Give each buffer the first colour that no conflicting buffer has.

    Args:
        schedule: Values and steps.
        in_place: Whether IN_PLACE aliases may be taken, before colours are given; True by default.
        order: Name of one of `ORDERS`; `size` by default.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can satisfy.

    Complexity: O(n^2) for n buffers.
    """
    buffers = buffers_in_place(schedule) if in_place else problem_of(schedule, in_place=False)
    colours = _colours(buffers.problem, order)
    sizes = block_sizes(buffers.problem, colours, int(colours.max(initial=-1)) + 1)
    block_of = [*colours.tolist(), -1]
    return Blocks(
        tuple(sizes.tolist()),
        tuple(block_of[buffer] for buffer in buffers.of_value),
        tuple(block_of[buffer] for buffer in buffers.of_scratch),
        buffers.in_place,
    )


def _colours(problem: Problem, order: str) -> Int64Array:
    colours = np.full(problem.count, -1, np.int64)
    for buffer in ORDERS[order](problem).tolist():
        around = colours[conflicts(problem, buffer)]
        used = np.zeros(len(around) + 1, bool)
        used[around[(around >= 0) & (around < len(used))]] = True
        colours[buffer] = int(np.flatnonzero(~used)[0])
    return colours
