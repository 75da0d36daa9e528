"""How long steps take that run as soon as they can, on any number of workers."""

from collections.abc import Sequence
from dataclasses import dataclass

from tightship.planner.parallel.dependencies import Edge


@dataclass(frozen=True, slots=True)
class LongestPaths:
    """Of each step the longest path that ends with it, and the longest that begins with it."""

    ending: tuple[float, ...]
    beginning: tuple[float, ...]

    @property
    def longest(self) -> float:
        """The longest path of all."""
        return max(self.ending, default=0)

    def growth(self, edge: Edge) -> float:
        """How much longer the longest path becomes by one more edge."""
        before, after = edge
        return max(0, self.ending[before] + self.beginning[after] - self.longest)


def longest_paths(weights: Sequence[float], edges: Sequence[Edge]) -> LongestPaths:
    """Longest paths over steps of the given weights.

    Args:
        weights: How long each step takes.
        edges: From a step to a later one.

    Complexity: O(steps + edges).
    """
    ending, beginning = list(weights), list(weights)
    for before, after in sorted(edges, key=lambda edge: edge[1]):
        ending[after] = max(ending[after], ending[before] + weights[after])
    for before, after in sorted(edges, reverse=True):
        beginning[before] = max(beginning[before], weights[before] + beginning[after])
    return LongestPaths(tuple(ending), tuple(beginning))
