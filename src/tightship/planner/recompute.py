"""Values computed again where they are needed, instead of kept: which, for a price of bytes."""

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


class Recomputation:
    """Choices of what a schedule keeps from its first part for its second, by price.

    The *turn* is the step after which most bytes are kept for later. A value written up to the
    turn and read behind it is kept, or the step that writes it runs again, just before the first
    reader behind the turn; what that step reads is then needed as well. For a price of bytes the
    choice of least cost, operations plus kept bytes times price, is a minimum cut. Operations rise
    with the price.
    """

    def __init__(self, schedule: Schedule, operations: Sequence[int], steady: float) -> None:
        """Set up the network of choices.

        Args:
            schedule: The steps.
            operations: Of each step, what running it again costs; `NEVER` where it must not.
            steady: Share of a byte's price that does not depend on how long it is kept.
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
        self._edges, self._limits, self._priced = self._network(steady)
        self._made: dict[frozenset[int], Recomputed] = {}

    def at_price(self, price: float) -> Recomputed:
        """The choice of least cost where a byte kept costs `price` operations.

        One object for prices that lead to one choice.
        """
        values, steps = len(self.schedule.values), len(self.schedule.steps)
        capacity = np.minimum(self._limits + self._priced * price, float(ALL)).astype(np.int64)
        ends = values + steps
        side = min_cut(ends + 2, self._edges, capacity, ends, ends + 1)
        again = frozenset(np.flatnonzero(side[values:ends]).tolist())
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

    def _network(self, steady: float) -> tuple[Int64Array, Float64Array, Float64Array]:
        """Nodes are values (needed behind the turn), steps (run again), and the two ends."""
        values, steps = len(self.schedule.values), len(self.schedule.steps)
        start, end = values + steps, values + steps + 1
        edges: list[tuple[int, int]] = []
        limits: list[float] = []
        priced: list[float] = []

        def add(one: int, other: int, limit: float, bytes_kept: float = 0.0) -> None:
            edges.append((one, other))
            limits.append(limit)
            priced.append(bytes_kept)

        gap = self._gaps()
        longest = max(gap.values(), default=1)
        for value in gap:
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
                    length = gap.get(value, longest)
                    add(value, node, 0.0, size * (steady + (1 - steady) * length / longest))
        return edge_columns(edges), np.array(limits, np.float64), np.array(priced, np.float64)

    def _gaps(self) -> dict[int, int]:
        """Values kept behind the turn, and for how many steps nobody reads them."""
        last: dict[int, int] = {}
        gap: dict[int, int] = {}
        for index, step in enumerate(self.schedule.steps):
            if index <= self.turn:
                last.update(dict.fromkeys((*step.reads, *step.writes), index))
            else:
                for value in step.reads:
                    writer = self._writer.get(value, index)
                    if writer <= self.turn and value not in gap:
                        gap[value] = index - last[value]
        return gap


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
