"""Ranks of nodes: an edge goes from one rank to a later one, and is as short as it may be.

Source: Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
structures", 1981, with longest paths as ranks and nodes moved where that shortens edges.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Nodes before and after each node, each once."""

    before: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(count: int, edges: Iterable[Edge]) -> "Neighbours":
        """Collect them from edges."""
        before: list[list[int]] = [[] for _ in range(count)]
        after: list[list[int]] = [[] for _ in range(count)]
        for source, target in dict.fromkeys(edges):
            before[target].append(source)
            after[source].append(target)
        return Neighbours(tuple(map(tuple, before)), tuple(map(tuple, after)))


def in_order(neighbours: Neighbours) -> list[int]:
    """Return nodes so that each comes after those before it; nodes of a cycle are left out."""
    missing = [len(each) for each in neighbours.before]
    found = [node for node, count in enumerate(missing) if not count]
    for node in found:
        for target in neighbours.after[node]:
            missing[target] -= 1
            if not missing[target]:
                found.append(target)
    return found


def ranks_of(neighbours: Neighbours, least: Sequence[int] = ()) -> list[int]:
    """Return the rank of each node of a graph without cycles, at least `least` of it or 0."""
    ordered, ranks = in_order(neighbours), list(least) or [0] * len(neighbours.before)
    for node in ordered:
        ranks[node] = max([ranks[node], *(ranks[each] + 1 for each in neighbours.before[node])])
    for node in reversed(ordered):
        after = neighbours.after[node]
        if after and len(after) > len(neighbours.before[node]):
            ranks[node] = min(ranks[each] for each in after) - 1
        elif after and all(len(neighbours.after[each]) == 1 for each in neighbours.before[node]):
            # What feeds this node alone follows it down, so that the edges above stay short.
            ranks[node] = min(ranks[each] for each in after) - 1
    return ranks


def mirrored_ranks(neighbours: Neighbours, is_backward: Sequence[bool]) -> list[int]:
    """Return ranks in which the backward pass climbs beside the forward pass.

    A step of the backward pass stands as low as the steps before it allow, but not below the
    lowest forward step whose value it reads. Forward steps leave room for what reads them.

    Args:
        neighbours: Neighbours of each node.
        is_backward: Whether each node is of the backward pass, as all after such a node are.
    """
    count = len(is_backward)
    forward, climbing = (_part(neighbours, is_backward, flag=flag) for flag in (False, True))
    heights = ranks_of(climbing)
    top = max((heights[node] for node in range(count) if is_backward[node]), default=0)
    beside_readers = [
        max(
            (top - heights[each] for each in neighbours.after[node] if is_backward[each]), default=0
        )
        for node in range(count)
    ]
    ranks = ranks_of(forward, beside_readers)
    lowest = max((ranks[node] for node in range(count) if not is_backward[node]), default=0)
    for node in in_order(neighbours):
        if is_backward[node]:
            before = neighbours.before[node]
            above = [ranks[each] - 1 for each in before if is_backward[each]]
            beside = [ranks[each] for each in before if not is_backward[each]]
            ranks[node] = min([*above, max(beside)] if beside else above, default=lowest)
    for node, after in enumerate(neighbours.after):
        if is_backward[node] and after and not neighbours.before[node]:
            ranks[node] = max(ranks[each] for each in after) + 1
    least = min(ranks, default=0)
    return [rank - least for rank in ranks]


def _part(neighbours: Neighbours, is_backward: Sequence[bool], *, flag: bool) -> Neighbours:
    """Return the neighbours within one pass."""
    return Neighbours.of(
        len(is_backward),
        [
            (source, target)
            for target, before in enumerate(neighbours.before)
            for source in before
            if is_backward[source] is flag and is_backward[target] is flag
        ],
    )
