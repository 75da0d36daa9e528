"""Implements the memory note's plan for parallel execution: sharing along longest paths."""

from collections.abc import Sequence

import numpy as np

from tightship.planner.parallel.dependencies import Edge
from tightship.planner.problem import Int64Array


def path_colours(step_count: int, edges: Sequence[Edge], paths: int) -> Int64Array:
    """Colour steps: one colour for each of `paths` longest paths, and one for each other step.

    The longest path of uncoloured steps is coloured, `paths` times. A path may pass through
    coloured steps, which do not count towards its length.

    Args:
        step_count: Number of steps.
        edges: Pairs of a step and a later step.
        paths: Number of paths; each is a stream of work that may run beside the others.

    Returns:
        A colour for each step, from 0; shape (step_count,).

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
    """Return the path with the most steps that count; of equal paths the one that ends first."""
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
