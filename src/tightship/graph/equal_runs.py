"""Finds equal runs within a sequence, such as the layers of a network."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RUNS_MIN = 3
"""Fewest runs that are worth the comparison."""


@dataclass(frozen=True, slots=True, eq=False)
class LayerRun:
    """Nodes `[start, start + period)`, and equal layers of as many nodes after them.

    After the last of them comes one more layer of equal nodes, whose values may be read otherwise.

    Attributes:
        start: First node of the first layer.
        period: Nodes of a layer.
        values: Values of each layer, constants included; equal indices in two layers name
            counterparts, or one value that both share.
        nodes: Names of the nodes of each layer, in corresponding order.
        entering: Indices of values from before the layer.
        constants: Indices of constants.
    """

    start: int
    period: int
    values: tuple[tuple[str, ...], ...]
    nodes: tuple[tuple[str, ...], ...]
    entering: tuple[int, ...]
    constants: tuple[int, ...]

    @property
    def stop(self) -> int:
        """First node after the last layer."""
        return self.start + self.period * len(self.values)


def longest_run(kinds: NDArray[np.int64]) -> tuple[int, int, int] | None:
    """Find start, period and count of the equal runs that cover most of a sequence."""
    best: tuple[int, int, int] | None = None
    for period in range(1, len(kinds) // RUNS_MIN + 1):
        is_equal = kinds[:-period] == kinds[period:]
        covered = 0 if best is None else best[1] * best[2]
        if np.count_nonzero(is_equal) + period <= covered:  # one interval cannot have more
            continue
        differs = np.flatnonzero(~is_equal)
        edges = np.concatenate([[-1], differs, [len(kinds) - period]])
        lengths = np.diff(edges) - 1
        longest = int(lengths.argmax())
        count = int(lengths[longest]) // period + 1
        if count >= RUNS_MIN and count * period > covered:
            best = int(edges[longest]) + 1, period, count
    return best
