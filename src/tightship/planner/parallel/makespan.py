"""Computes the time of steps that a number of workers run as soon as they can."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from tightship.planner.parallel.dependencies import Edge
from tightship.planner.parallel.longest_path import longest_paths


def makespan(weights: Sequence[int], edges: Sequence[Edge], workers: int) -> int:
    """Simulate workers that take the ready step with the longest path behind it, as runs do.

    Args:
        weights: Time that each step takes, in any unit.
        edges: Pairs of a step and a later step that waits for it.
        workers: Steps that may run at once, at least 1.

    Returns:
        Time until the last step has ended.

    Complexity: O((steps + edges) * log(steps)).
    """
    waits = [0] * len(weights)
    followers: list[list[int]] = [[] for _ in weights]
    for before, after in edges:
        waits[after] += 1
        followers[before].append(after)
    order = urgent_first(weights, edges)
    rank = {step: place for place, step in enumerate(order)}
    ready = [rank[step] for step, count in enumerate(waits) if count == 0]
    heapify(ready)
    running: list[tuple[int, int]] = []
    now = 0
    while ready or running:
        while ready and len(running) < workers:
            step = order[heappop(ready)]
            heappush(running, (now + weights[step], step))
        now, ended = heappop(running)
        for step in followers[ended]:
            waits[step] -= 1
            if waits[step] == 0:
                heappush(ready, rank[step])
    return now


def urgent_first(weights: Sequence[int], edges: Sequence[Edge]) -> list[int]:
    """Order steps by the longest path that begins with each, the longest first."""
    left = longest_paths(weights, edges).beginning
    return sorted(range(len(weights)), key=lambda step: (-left[step], step))
