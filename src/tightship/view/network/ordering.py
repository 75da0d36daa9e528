"""Order of nodes within ranks, by medians: few edges cross."""

from bisect import bisect_right, insort
from collections.abc import Sequence

from tightship.view.network.ranks import Neighbours

SWEEPS = 12


def ordered(ranks: Sequence[int], neighbours: Neighbours) -> list[list[int]]:
    """Return the nodes of each rank from left to right.

    Edges must join neighbouring ranks. Sweeps go down and up by turns; the order with the fewest
    crossings is kept.
    """
    rows: list[list[int]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    for node in _depth_first(neighbours):
        rows[ranks[node]].append(node)
    best, least = [list(row) for row in rows], crossings(rows, neighbours)
    for sweep in range(SWEEPS):
        if not least:
            break
        _sweep(rows, neighbours, is_down=sweep % 2 == 0)
        found = crossings(rows, neighbours)
        if found < least:
            best, least = [list(row) for row in rows], found
    return best


def crossings(rows: Sequence[Sequence[int]], neighbours: Neighbours) -> int:
    """Count the pairs of edges between neighbouring ranks that cross."""
    place = {node: index for row in rows for index, node in enumerate(row)}
    count = 0
    for row in rows:
        seen: list[int] = []
        for node in row:
            ends = sorted(place[target] for target in neighbours.after[node])
            count += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return count


def _depth_first(neighbours: Neighbours) -> list[int]:
    """Return all nodes, each followed by what comes after it, so that branches stay together."""
    found: dict[int, None] = {}
    roots = [node for node, before in enumerate(neighbours.before) if not before]
    waiting = roots[::-1]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting.extend(reversed(neighbours.after[node]))
    return list(found)


def _sweep(rows: list[list[int]], neighbours: Neighbours, *, is_down: bool) -> None:
    beside = neighbours.before if is_down else neighbours.after
    place = {node: index for row in rows for index, node in enumerate(row)}
    for row in rows if is_down else rows[::-1]:
        wanted = {
            node: _median([place[each] for each in beside[node]], place[node]) for node in row
        }
        row.sort(key=wanted.__getitem__)
        place.update((node, index) for index, node in enumerate(row))


def _median(places: list[int], own: int) -> float:
    if not places:
        return own
    places.sort()
    middle = len(places) // 2
    return places[middle] if len(places) % 2 else (places[middle - 1] + places[middle]) / 2
