"""Values computed again where they are needed, instead of kept: which, for a price of bytes."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship._core import min_cut
from tightship.errors import PlanError
from tightship.planner.cell import cells_of
from tightship.planner.parallel.dependencies import edge_columns
from tightship.planner.problem import Int64Array
from tightship.planner.schedule import BINDING, AliasKind, Schedule
from tightship.planner.written_again import written_again

Float64Array = NDArray[np.float64]

NEVER = -1
"""Operations of a step that must not run twice."""

ALL = 2**60
"""More than any choice costs; sums of a few million stay within 63 bits."""

CHOICES_MAX = 24
"""Of least cost, that are looked for."""

NEAR = 32
"""Steps behind the turn within which little is won by what is computed again."""


@dataclass(frozen=True, slots=True, eq=False)
class Recomputed:
    """A schedule in which steps run again.

    Attributes:
        schedule: The schedule, values of the clones behind the others.
        origin: For each of its steps the index of the one given that it is, or is a clone of.
        operations: What the clones add.
    """

    schedule: Schedule
    origin: tuple[int, ...]
    operations: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Steps to run again, what they cost, and what is kept; no load is less than `kept_bytes`."""

    again: frozenset[int]
    operations: float
    kept_bytes: float


class Recomputation:
    """Choices of what a schedule keeps from its first part for its second.

    The *turn* is the step after which most bytes are kept for later. A value written up to the
    turn and read behind it is kept, or the step that writes it runs again, just before the first
    reader behind the turn; what that step reads is then needed as well. For a price of bytes the
    choice of least cost, operations plus kept bytes times price, is a minimum cut. A byte that is
    needed late is worth more, up to twice as much: of equal ones, what keeps room longest is given
    up first. What comes back within `NEAR` steps is worth less in proportion.
    """

    def __init__(self, schedule: Schedule, operations: Sequence[int]) -> None:
        """Set up the network of choices.

        Args:
            schedule: The steps.
            operations: Of each step, what running it again costs; `NEVER` where it must not.
        """
        self.schedule = schedule
        self.operations = operations
        self.turn = turn_of(schedule)
        self._writer = {v: i for i, step in enumerate(schedule.steps) for v in step.writes}
        self._shown = {
            alias.output: alias.input
            for step in schedule.steps
            for alias in step.aliases
            if alias.kind in BINDING
        }
        self._edges, self._limits, self._sizes = self._network()
        self._made: dict[frozenset[int], Recomputed] = {}

    def at_price(self, price: float) -> Choice:
        """The choice of least cost where a byte kept costs `price` operations."""
        values, steps = len(self.schedule.values), len(self.schedule.steps)
        capacity = np.minimum(self._limits + self._sizes * price, float(ALL)).astype(np.int64)
        ends = values + steps
        side = min_cut(ends + 2, self._edges, capacity, ends, ends + 1)
        cut = (side[self._edges[0]] == 1) & (side[self._edges[1]] == 0)
        again = frozenset(np.flatnonzero(side[values:ends]).tolist())
        return Choice(again, float(self._limits[cut].sum()), float(self._sizes[cut].sum()))

    def choices(self, price_max: float) -> list[Choice]:
        """Those of least cost at any price up to the largest, by rising operations.

        Of each two neighbours the first is the best choice with as many operations, and between
        them none is below the line from one to the other. At most `CHOICES_MAX`.
        """
        ends = [self.at_price(0.0), self.at_price(price_max)]
        found, open_pairs = list(ends), deque([(ends[0], ends[1])])
        while open_pairs and len(found) < CHOICES_MAX:
            low, high = open_pairs.popleft()
            if high.kept_bytes < low.kept_bytes and high.operations > low.operations:
                rise = high.operations - low.operations
                made = self.at_price(rise / (low.kept_bytes - high.kept_bytes))
                if low.operations < made.operations < high.operations:
                    found.append(made)
                    open_pairs += [(low, made), (made, high)]
        return sorted(found, key=lambda choice: choice.operations)

    def written(self, again: frozenset[int]) -> Recomputed:
        """The schedule in which steps run again; whatever they are, it computes the same."""
        if again not in self._made:
            schedule, origin = self._written(again)
            added = sum(self.operations[step] for step in origin) - sum(self.operations)
            self._made[again] = Recomputed(schedule, origin, added)
        return self._made[again]

    def _written(self, again: frozenset[int]) -> tuple[Schedule, tuple[int, ...]]:
        """The schedule given where a clone would read bytes that are written over for good."""
        try:
            schedule, origin = written_again(self.schedule, self.turn, again)
            cells_of(schedule)
        except PlanError:
            return self.schedule, tuple(range(len(self.schedule.steps)))
        return schedule, origin

    def _network(self) -> tuple[Int64Array, Float64Array, Float64Array]:
        """Nodes are values (needed behind the turn), steps (run again), and the two ends."""
        values, steps = len(self.schedule.values), len(self.schedule.steps)
        start, end = values + steps, values + steps + 1
        edges: list[tuple[int, int]] = []
        limits: list[float] = []
        sizes: list[float] = []

        def add(one: int, other: int, limit: float, size_bytes: float = 0.0) -> None:
            edges.append((one, other))
            limits.append(limit)
            sizes.append(size_bytes)

        gaps = self._gaps()
        longest = max(gaps.values(), default=NEAR)
        for value in gaps:
            add(start, value, ALL)
        for index, step in enumerate(self.schedule.steps[: self.turn + 1]):
            node = values + index
            cost = self.operations[index]
            add(node, end, ALL if cost == NEVER else cost)
            for value in dict.fromkeys(step.reads):
                if value in self._writer:
                    add(node, value, ALL)
            for value in step.writes:
                size = self.schedule.values[value].size_bytes
                if self.schedule.values[value].external:
                    continue
                if value in self._shown:
                    add(value, node, ALL)
                else:
                    gap = gaps.get(value, longest)
                    worth = min(1.0, gap / NEAR) * (1 + gap / longest) / 2
                    add(value, node, 0.0, size * worth)
        return edge_columns(edges), np.array(limits, np.float64), np.array(sizes, np.float64)

    def _gaps(self) -> dict[int, int]:
        """Values written up to the turn and read behind it, and how far behind."""
        gaps: dict[int, int] = {}
        for index in range(self.turn + 1, len(self.schedule.steps)):
            for value in self.schedule.steps[index].reads:
                if self._writer.get(value, index) <= self.turn:
                    gaps.setdefault(value, index - self.turn)
        for value in sorted(gaps, key=lambda value: -self._writer[value]):
            if (base := self._shown.get(value)) in self._writer:
                gaps[base] = min(gaps[value], gaps.get(base, gaps[value]))
        return gaps


def ties_early(schedule: Schedule) -> tuple[Schedule, tuple[int, ...]]:
    """The schedule with steps that write over bytes for good as soon as these are read.

    Returns:
        The schedule, or the one given where bytes are read under another name as well, and for
        each of its steps the index of the one given.
    """
    early, origin = written_again(schedule, -1, ())
    try:
        cells_of(early)
    except PlanError:
        return schedule, tuple(range(len(schedule.steps)))
    return early, origin


def turn_of(schedule: Schedule) -> int:
    """The step behind which the most bytes are read that were written before it, or by it."""
    last = {v: i for i, step in enumerate(schedule.steps) for v in step.reads}
    change = np.zeros(len(schedule.steps) + 1, np.int64)
    for index, step in enumerate(schedule.steps):
        for value in step.writes:
            scheduled = schedule.values[value]
            is_view = any(
                alias.output == value and alias.kind is AliasKind.VIEW for alias in step.aliases
            )
            if not scheduled.external and not is_view:
                change[index] += scheduled.size_bytes
                change[last.get(value, index)] -= scheduled.size_bytes
    return int(np.cumsum(change).argmax())
