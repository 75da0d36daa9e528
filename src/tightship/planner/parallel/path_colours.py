"""The memory note's way to plan for parallel execution: paths, and sharing along each."""

from collections.abc import Sequence

import numpy as np

from tightship.planner.parallel.dependencies import Edge
from tightship.planner.problem import Int64Array


def path_colours(step_count: int, edges: Sequence[Edge], paths: int) -> Int64Array:
    """A colour for each step: those of `paths` longest paths, and one of its own for each other.

    The longest path of steps without a colour is coloured, `paths` times; it may pass through steps
    that have one, which do not count.

    Args:
        step_count: How many steps there are.
        edges: From a step to a later one.
        paths: How many paths are wanted; each is a stream of work that may run beside the others.

    Complexity: O(paths * (steps + edges)).
    Source: MXNet, "Optimizing Memory Consumption in Deep Learning": colouring for parallel
        execution.
    """
    incoming: list[list[int]] = [[] for _ in range(step_count)]
    for before, after in edges:
        incoming[after].append(before)
    colour = np.arange(paths, paths + step_count, dtype=np.int64)
    for path in range(paths):
        for step in _longest(incoming, colour >= paths):
            if colour[step] >= paths:
                colour[step] = path
    return colour


def _longest(incoming: Sequence[Sequence[int]], counts: np.ndarray[tuple[int], np.dtype[np.bool_]],
             ) -> list[int]:  # fmt: skip
    """The path with the most steps that count; of equal ones the one that ends first."""
    lengths: list[int] = []
    came_from: list[int] = []
    for step, before in enumerate(incoming):
        best = max(before, key=lambda other: lengths[other], default=-1)
        came_from.append(best)
        lengths.append(int(counts[step]) + (lengths[best] if best >= 0 else 0))
    path: list[int] = []
    step = lengths.index(max(lengths)) if lengths else -1
    while step >= 0:
        path.append(step)
        step = came_from[step]
    return path
