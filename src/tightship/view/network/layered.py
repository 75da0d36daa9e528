"""Lays a graph out in ranks: boxes, and edges as curves between them."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tightship.view.network.columns import ASPECT, cuts_of
from tightship.view.network.coordinates import positions
from tightship.view.network.ordering import ordered
from tightship.view.network.ranks import Edge, Neighbours, mirrored_ranks, ranks_of

Point = tuple[float, float]
BENDS_MAX = 8000
"""Most bends of all edges; longer edges than these allow are drawn straight."""
_RANK_GAP, _SIDE_GAP, _COLUMN_GAP, _EDGE_WIDTH = 30.0, 70.0, 64.0, 8.0
_MIRRORED_ASPECT = 0.8
"""Width to height of a picture of both passes, which columns would tear apart."""
_TURN = 16.0
"""Distance from a column at which an edge to another one turns."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of boxes and edges.

    Attributes:
        boxes: Left, top, width and height of each node.
        routes: Points of each edge, as cubic curves: a start, then two controls and an end each.
        loose: Whether each edge is drawn past other boxes, without bends.
        width: Width of all.
        height: Height of all.
    """

    boxes: tuple[tuple[float, float, float, float], ...]
    routes: tuple[tuple[Point, ...], ...]
    loose: tuple[bool, ...]
    width: float
    height: float


def laid_out(
    sizes: Sequence[tuple[float, float]], edges: Sequence[Edge], is_backward: Sequence[bool]
) -> Layout:
    """Lay out a graph without cycles.

    The forward pass runs down; the backward pass climbs at its right side, beside the values that
    it reads. Tall graphs are cut into columns.

    Args:
        sizes: Width and height of each node.
        edges: Edges, each once.
        is_backward: Whether each node is of the backward pass.
    """
    neighbours = Neighbours.of(len(sizes), edges)
    ranks = mirrored_ranks(neighbours, is_backward) if any(is_backward) else ranks_of(neighbours)
    sides = [
        _Side.of(sizes, edges, ranks, [flag is way for flag in is_backward], is_up=way)
        for way in (False, True)
    ]
    return _Placing(sizes, edges, is_backward, ranks, sides).layout()


@dataclass(frozen=True, slots=True)
class _Side:
    """One pass, laid out alone: the middle of each node and of each bend of its edges."""

    middles: dict[int, float]
    bends: dict[Edge, list[tuple[int, float]]]
    width: float

    @staticmethod
    def of(
        sizes: Sequence[tuple[float, float]],
        edges: Sequence[Edge],
        ranks: Sequence[int],
        chosen: Sequence[bool],
        *,
        is_up: bool,
    ) -> "_Side":
        nodes = [node for node, is_here in enumerate(chosen) if is_here]
        number = {node: index for index, node in enumerate(nodes)}
        top = max((ranks[node] for node in nodes), default=0)
        rows = [top - ranks[node] if is_up else ranks[node] for node in nodes]
        least = min(rows, default=0)
        rows = [row - least for row in rows]
        widths = [sizes[node][0] for node in nodes]
        inner = [(a, b) for a, b in edges if chosen[a] and chosen[b]]
        links, bends = list[Edge](), dict[Edge, list[int]]()
        left = BENDS_MAX
        for a, b in sorted(inner, key=lambda e: abs(ranks[e[1]] - ranks[e[0]])):
            start, stop = rows[number[a]], rows[number[b]]
            left -= stop - start - 1
            if left < 0:
                continue
            bends[a, b] = list(range(len(rows), len(rows) + stop - start - 1))
            rows += range(start + 1, stop)
            widths += [_EDGE_WIDTH] * (stop - start - 1)
            links += pairwise([number[a], *bends[a, b], number[b]])
        neighbours = Neighbours.of(len(rows), links)
        weights = [1.0] * len(nodes) + [3.0] * (len(rows) - len(nodes))
        middles = positions(ordered(rows, neighbours), neighbours, widths, weights)
        ends = [middle + width / 2 for middle, width in zip(middles, widths, strict=True)]

        def rank(row: int) -> int:
            return top - least - row if is_up else row + least

        return _Side(
            {node: middles[number[node]] for node in nodes},
            {edge: [(rank(rows[each]), middles[each]) for each in points]
             for edge, points in bends.items()},
            max(ends, default=0.0),
        )  # fmt: skip


class _Placing:
    """Places both sides on the ranks, in columns."""

    def __init__(
        self,
        sizes: Sequence[tuple[float, float]],
        edges: Sequence[Edge],
        is_backward: Sequence[bool],
        ranks: Sequence[int],
        sides: Sequence[_Side],
    ) -> None:
        self.sizes, self.edges, self.is_backward, self.ranks = sizes, edges, is_backward, ranks
        self.sides = sides
        heights = [0.0] * (max(ranks, default=-1) + 1)
        for (_, height), rank in zip(sizes, ranks, strict=True):
            heights[rank] = max(heights[rank], height)
        self.heights = heights
        self.tops = [sum(heights[:rank]) + rank * _RANK_GAP for rank in range(len(heights))]
        shift = sides[0].width + _SIDE_GAP if sides[0].middles else 0.0
        self.shifts = (0.0, shift)
        self.middles = [
            sides[flag].middles[node] + self.shifts[flag] for node, flag in enumerate(is_backward)
        ]
        width = shift + sides[1].width if sides[1].middles else sides[0].width
        height = self.tops[-1] + heights[-1] if heights else 0.0
        aspect = _MIRRORED_ASPECT if sides[1].middles else ASPECT
        self.cuts = cuts_of(self.tops, height, width, self._crossing(), aspect)
        self.lefts, self.bottoms, self.moves = self._columns()

    def _crossing(self) -> list[int]:
        changes = [0] * (len(self.heights) + 1)
        for a, b in self.edges:
            low, high = sorted((self.ranks[a], self.ranks[b]))
            changes[low + 1] += 1
            changes[high + 1] -= 1
        found, count = [], 0
        for change in changes[:-1]:
            count += change
            found.append(count)
        return found

    def _columns(self) -> tuple[list[float], list[float], list[float]]:
        """Return left edge, height and horizontal move of each column."""
        spans: list[list[float]] = [[] for _ in self.cuts]
        for node, rank in enumerate(self.ranks):
            half = self.sizes[node][0] / 2
            spans[self._column(rank)] += [self.middles[node] - half, self.middles[node] + half]
        for side, shift in zip(self.sides, self.shifts, strict=True):
            for points in side.bends.values():
                for rank, middle in points:
                    spans[self._column(rank)].append(middle + shift)
        lefts, bottoms, moves, at = [], [], [], 0.0
        for index, span in enumerate(spans):
            low, high = min(span, default=0.0), max(span, default=0.0)
            lefts.append(at)
            moves.append(at - low)
            at += high - low + _COLUMN_GAP
            last = (self.cuts[index + 1] if index + 1 < len(self.cuts) else len(self.heights)) - 1
            if self.heights:
                bottoms.append(self._top(last, self.cuts[index]) + self.heights[last])
        self.width = at - _COLUMN_GAP
        return lefts, bottoms, moves

    def _column(self, rank: int) -> int:
        return bisect_right(self.cuts, rank) - 1

    def _top(self, rank: int, first: int) -> float:
        return self.tops[rank] - self.tops[first]

    def _point(self, rank: int, middle: float) -> Point:
        """Return the middle of a place in a rank."""
        column = self._column(rank)
        top = self._top(rank, self.cuts[column])
        return middle + self.moves[column], top + self.heights[rank] / 2

    def layout(self) -> Layout:
        boxes, routes, loose = [], [], []
        for node, (width, height) in enumerate(self.sizes):
            x, y = self._point(self.ranks[node], self.middles[node])
            boxes.append((x - width / 2, y - height / 2, width, height))
        for edge in self.edges:
            flag = self.is_backward[edge[0]]
            bends = self.sides[flag].bends.get(edge)
            is_across = flag is not self.is_backward[edge[1]]
            routes.append(
                self._across(edge) if is_across else self._along(edge, bends or (), is_up=flag)
            )
            loose.append(is_across or bends is None)
        height = max(self.bottoms, default=0.0)
        return Layout(tuple(boxes), tuple(routes), tuple(loose), max(0.0, self.width), height)

    def _across(self, edge: Edge) -> tuple[Point, ...]:
        """Return a curve from the right side of a forward node to the left side of another one."""
        (ax, ay), (bx, by) = (self._point(self.ranks[n], self.middles[n]) for n in edge)
        ax, bx = ax + self.sizes[edge[0]][0] / 2, bx - self.sizes[edge[1]][0] / 2
        reach = max(30.0, (bx - ax) / 2)
        return (ax, ay), (ax + reach, ay), (bx - reach, by), (bx, by)

    def _along(
        self, edge: Edge, bends: Sequence[tuple[int, float]], *, is_up: bool
    ) -> tuple[Point, ...]:
        """Return a curve through the bends of an edge, from side to side of its nodes."""
        a, b = edge
        way, shift = (-1, self.shifts[1]) if is_up else (1, 0.0)
        ax, ay = self._point(self.ranks[a], self.middles[a])
        bx, by = self._point(self.ranks[b], self.middles[b])
        points = [(self.ranks[a], (ax, ay + way * self.sizes[a][1] / 2))]
        points += [(rank, self._point(rank, middle + shift)) for rank, middle in bends]
        points.append((self.ranks[b], (bx, by - way * self.sizes[b][1] / 2)))
        found = [points[0][1]]
        for (one, p), (other, q) in pairwise(points):
            found += self._curve(self._column(one), self._column(other), p, q, way)
        return tuple(found)

    def _curve(self, one: int, other: int, p: Point, q: Point, way: int) -> list[Point]:
        """Return controls and end of a curve, or of two that turn about the ends of columns."""
        if one == other:
            half = (q[1] - p[1]) / 2
            return [(p[0], p[1] + half), (q[0], q[1] - half), q]
        gutter = self.lefts[max(one, other)] - _COLUMN_GAP / 2
        leave = self.bottoms[one] + _TURN if way > 0 else -_TURN
        enter = -_TURN if way > 0 else self.bottoms[other] + _TURN
        turn = 3 * _TURN * way
        return [
            (p[0], leave), (gutter, leave), (gutter, leave - turn),
            (gutter, leave - turn), (gutter, enter + turn), (gutter, enter + turn),
            (gutter, enter), (q[0], enter), q,
        ]  # fmt: skip
