"""Positions of nodes within their ranks: near their neighbours, and apart from one another."""

from collections.abc import Sequence

from tightship.view.network.ranks import Neighbours

PASSES = 10
_GAP = 26.0


def positions(
    rows: Sequence[Sequence[int]],
    neighbours: Neighbours,
    widths: Sequence[float],
    weights: Sequence[float],
) -> list[float]:
    """Return the middle of each node on the axis across the ranks, from 0 on.

    Ranks are placed by turns from above and from below, each as near to the mean of its neighbours
    as the gaps between its nodes allow.

    Args:
        rows: Nodes of each rank in order.
        neighbours: Neighbours of each node.
        widths: Width of each node.
        weights: How strongly each node is drawn to its place; bends of edges want straight lines.
    """
    middles = [0.0] * len(widths)
    for row in rows:
        wanted = [index * (widths[node] + _GAP) for index, node in enumerate(row)]
        _place(row, wanted, widths, weights, middles)
    for turn in range(PASSES):
        is_down = turn % 2 == 0
        for row in rows if is_down else rows[::-1]:
            wanted = []
            for node in row:
                near = neighbours.before[node] if is_down else neighbours.after[node]
                if turn >= PASSES - 2:
                    near = (*neighbours.before[node], *neighbours.after[node])
                total = sum(weights[each] for each in near)
                mean = sum(weights[each] * middles[each] for each in near)
                wanted.append(mean / total if total else middles[node])
            _place(row, wanted, widths, weights, middles)
    left = min((m - w / 2 for m, w in zip(middles, widths, strict=True)), default=0.0)
    return [middle - left for middle in middles]


def _place(
    row: Sequence[int],
    wanted: Sequence[float],
    widths: Sequence[float],
    weights: Sequence[float],
    middles: list[float],
) -> None:
    """Place one rank at the least weighted sum of squares from what is wanted."""
    shifts, at = [], 0.0
    for index, node in enumerate(row):
        if index:
            at += (widths[row[index - 1]] + widths[node]) / 2 + _GAP
        shifts.append(at)
    apart = [want - shift for want, shift in zip(wanted, shifts, strict=True)]
    fitted = rising(apart, [weights[node] for node in row])
    for node, place, shift in zip(row, fitted, shifts, strict=True):
        middles[node] = place + shift


def rising(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the numbers that never fall and are nearest to `values`, by weighted squares.

    Source: pooling of adjacent violators, as in isotonic regression.
    """
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (one, a, n), (other, b, m) = pools[-2:]
            pools[-2:] = [((one * a + other * b) / (a + b), a + b, n + m)]
    return [value for value, _, count in pools for _ in range(count)]
