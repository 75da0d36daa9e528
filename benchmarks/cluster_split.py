"""Cuts of models for random sets of nodes: by planned bytes, by equal layers, by share of memory.

All three cut the same program at the same places. Equal layers gives every node as many steps;
share of memory gives node i the part of the weights that its memory is of the whole, as tools do
that know no plan. Both use all nodes, and get the best of all orders of them. A set counts as
possible if the exact search finds stages within the budgets; it proves where there are none.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
from benchmarks.models import stored

from tightship.cluster.cut_table import weights_of
from tightship.cluster.splitting import Splitter

NETWORKS = ("resnet50", "densenet121", "inception_v1", "mobilenet_v2", "efficientnet_b0", "vit")
SETS = 1000
SEED = 20
NODES = (2, 3, 4)
LEAST, MOST = 0.25, 1.0
"""Range of a node's memory, as a part of the plan of the whole model."""

Way = Callable[[Splitter, Sequence[int]], list[int]]


@dataclass(slots=True)
class Counts:
    """Results over the sets of one network.

    Attributes:
        sets: Sets of nodes.
        possible: Sets that stages within the budgets exist for.
        over: Possible sets for which ours, equal layers and share of memory exceed a budget.
        all_fit: Possible sets in which all three fit.
        crossing: Bytes across cuts of each, summed over these.
    """

    sets: int
    possible: int
    over: list[int]
    crossing: list[int]
    all_fit: int = 0


def measured(name: str, folder: Path, sets: int = SETS) -> dict[str, object]:
    """Compare the three on random sets of nodes for a network."""
    found = Splitter.of(stored(name, folder).model, None, 1)
    last = len(found.table.cuts) - 1
    whole = found.stage_bytes(0, last)
    counts = Counts(sets, 0, [0, 0, 0], [0, 0, 0])
    for budgets in random_sets(whole, sets):
        ours = found.cuts(budgets)
        if ours is None:
            continue
        counts.possible += 1
        theirs = [best_order(found, budgets, way) for way in (equal_layers, share_of_memory)]
        counts.over = [
            over + (crossing is None)
            for over, crossing in zip(counts.over, (ours.crossing_bytes, *theirs), strict=True)
        ]
        if None not in theirs:
            crossing = (ours.crossing_bytes, *theirs)
            counts.crossing = [a + (b or 0) for a, b in zip(counts.crossing, crossing, strict=True)]
            counts.all_fit += 1
    return {
        "network": name, "steps": len(found.lowered.steps), "cuts": last - 1, "whole_bytes": whole,
        "sets": counts.sets, "possible": counts.possible, "over": counts.over,
        "all_fit": counts.all_fit, "crossing_bytes": counts.crossing,
    }  # fmt: skip


def random_sets(whole_bytes: int, count: int) -> Iterator[list[int]]:
    """Yield budgets of 2 to 4 nodes, from a seed."""
    random = np.random.default_rng(SEED)
    for _ in range(count):
        nodes = int(random.choice(NODES))
        yield [int(part * whole_bytes) for part in random.uniform(LEAST, MOST, nodes)]


def best_order(found: Splitter, budgets: Sequence[int], way: Way) -> int | None:
    """Return the least bytes across cuts over all orders of the nodes; None if none fits."""
    last = len(found.table.cuts) - 1
    fitting = []
    for order in permutations(budgets):
        ends = [0, *way(found, order), last]
        sizes = [
            found.stage_bytes(first, stop) if first < stop else 0 for first, stop in pairwise(ends)
        ]
        if all(size <= budget for size, budget in zip(sizes, order, strict=True)):
            fitting.append(int(found.table.crossing_bytes[ends].sum()))
    return min(fitting, default=None)


def equal_layers(found: Splitter, budgets: Sequence[int]) -> list[int]:
    """Cuts nearest to equal numbers of steps."""
    cuts, nodes = found.table.cuts, len(budgets)
    return [int(np.abs(cuts - cuts[-1] * part / nodes).argmin()) for part in range(1, nodes)]


def share_of_memory(found: Splitter, budgets: Sequence[int]) -> list[int]:
    """Cuts nearest to where the weights so far are the part that the memory so far is."""
    seen: set[int] = set()
    so_far = [0]
    for step in found.lowered.steps:
        seen |= weights_of(step)
        so_far.append(sum(found.lowered.weights[each].size_bytes for each in seen))
    at_cuts = np.array(so_far)[found.table.cuts]
    parts = np.cumsum(budgets)[:-1] / sum(budgets)
    return [int(np.abs(at_cuts - at_cuts[-1] * part).argmin()) for part in parts]
