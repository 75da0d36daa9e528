"""Computes the time of steps that run as soon as they can, on any number of workers."""

from collections.abc import Sequence
from dataclasses import dataclass

from tightship.planner.parallel.dependencies import Edge


@dataclass(frozen=True, slots=True)
class LongestPaths:
    """The longest path that ends with each step, and the longest that begins with it."""

    ending: tuple[float, ...]
    beginning: tuple[float, ...]

    @property
    def longest(self) -> float:
        """Length of the longest path of all."""
        return max(self.ending, default=0)

    def growth(self, edge: Edge) -> float:
        """Return the increase of the longest path by one more edge."""
        before, after = edge
        return max(0, self.ending[before] + self.beginning[after] - self.longest)


def longest_paths(weights: Sequence[float], edges: Sequence[Edge]) -> LongestPaths:
    """Compute longest paths over steps of the given weights.

    Args:
        weights: Time that each step takes, in any unit.
        edges: Pairs of a step and a later step.

    Complexity: O(steps + edges).
    """
    ending, beginning = list(weights), list(weights)
    for before, after in sorted(edges, key=lambda edge: edge[1]):
        ending[after] = max(ending[after], ending[before] + weights[after])
    for before, after in sorted(edges, reverse=True):
        beginning[before] = max(beginning[before], weights[before] + beginning[after])
    return LongestPaths(tuple(ending), tuple(beginning))
