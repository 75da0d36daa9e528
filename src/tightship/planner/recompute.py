"""Chooses values to compute again where they are needed instead of keeping them."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship._core import min_cut
from tightship.errors import PlanError
from tightship.planner.alias_group import alias_groups_of
from tightship.planner.parallel.dependencies import edge_columns
from tightship.planner.problem import Int64Array
from tightship.planner.rematerialized import rematerialized
from tightship.planner.replayed import replayed
from tightship.planner.schedule import BINDING, AliasKind, Schedule

Float64Array = NDArray[np.float64]

NEVER = -1
"""Marks a step that must not run twice, instead of its number of operations."""

ALL = 2**60
"""More than any choice costs, but small enough that sums of capacities stay within 63 bits."""

CHOICES_MAX = 24
"""Most choices of least cost to look for."""

NEAR = 32
"""Steps after the turn within which computing a value again saves little."""


@dataclass(frozen=True, slots=True, eq=False)
class Recomputed:
    """A schedule in which steps run again.

    Attributes:
        schedule: The schedule; the values of clones follow the others.
        origin: For each step of `schedule`, the index of the original step that it is or clones.
        operations: Operations that the clones add.
    """

    schedule: Schedule
    origin: tuple[int, ...]
    operations: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Steps to run again, their operations, and bytes kept: a lower bound on the live bytes."""

    again: frozenset[int]
    operations: float
    kept_bytes: float


class Recomputation:
    """Chooses the values that a schedule keeps from its first part for its second.

    The *turn* is the step after which most bytes are kept for later steps. A value written up to
    the turn and read after it is either kept, or the step that writes it runs again just before
    the first reader after the turn, and the inputs of that step are then needed as well. For a
    given price of bytes the choice of least cost, which is operations plus kept bytes times price,
    is a minimum cut. A byte that is needed late weighs up to twice as much, because it is occupied
    longer. A byte that is needed within `NEAR` steps of the turn weighs less in proportion.
    """

    def __init__(self, schedule: Schedule, operations: Sequence[int]) -> None:
        """Set up the network of choices.

        Args:
            schedule: The steps.
            operations: Operations of running each step again; `NEVER` for one that must not.
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
        """Return the choice of least cost if a byte kept costs `price` operations."""
        values, steps = len(self.schedule.values), len(self.schedule.steps)
        capacity = np.minimum(self._limits + self._sizes * price, float(ALL)).astype(np.int64)
        ends = values + steps
        side = min_cut(ends + 2, self._edges, capacity, ends, ends + 1)
        cut = (side[self._edges[0]] == 1) & (side[self._edges[1]] == 0)
        again = frozenset(np.flatnonzero(side[values:ends]).tolist())
        return Choice(again, float(self._limits[cut].sum()), float(self._sizes[cut].sum()))

    def choices(self, price_max: float) -> list[Choice]:
        """Return choices of least cost at prices up to `price_max`, by increasing operations.

        The choices lie on the lower convex hull of operations and bytes: no choice lies below the
        line between two neighbours. At most `CHOICES_MAX` are returned.
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
        """Return the schedule in which the steps `again` run twice; its results are the same."""
        if again not in self._made:
            schedule, origin = self._written(again)
            added = sum(self.operations[step] for step in origin) - sum(self.operations)
            self._made[again] = Recomputed(schedule, origin, added)
        return self._made[again]

    def replayed(self, runs: Sequence[int]) -> Recomputed | None:
        """Return the schedule of runs of steps; None if one would read overwritten bytes."""
        try:
            schedule, origin = replayed(self.schedule, runs, self.turn)
            alias_groups_of(schedule)
        except PlanError:
            return None
        added = sum(self.operations[step] for step in origin) - sum(self.operations)
        return Recomputed(schedule, origin, added)

    def _written(self, again: frozenset[int]) -> tuple[Schedule, tuple[int, ...]]:
        """Insert clones; return the original schedule if one would read overwritten bytes."""
        try:
            schedule, origin = rematerialized(self.schedule, self.turn, again)
            alias_groups_of(schedule)
        except PlanError:
            return self.schedule, tuple(range(len(self.schedule.steps)))
        return schedule, origin

    def _network(self) -> tuple[Int64Array, Float64Array, Float64Array]:
        """Make edges, their operations and their bytes, for a minimum cut.

        Nodes are values (needed after the turn), steps (run again), and source and sink. Infinite
        edges express requirements: a needed value requires its writer, and a clone requires its
        inputs.
        """
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
                    # From 1/2 for the nearest reader to 1 for the farthest; close to 0 within NEAR.
                    worth = min(1.0, gap / NEAR) * (1 + gap / longest) / 2
                    add(value, node, 0.0, size * worth)
        return edge_columns(edges), np.array(limits, np.float64), np.array(sizes, np.float64)

    def _gaps(self) -> dict[int, int]:
        """Return values written up to the turn and read after it, with the steps until the read."""
        gaps: dict[int, int] = {}
        for index in range(self.turn + 1, len(self.schedule.steps)):
            for value in self.schedule.steps[index].reads:
                if self._writer.get(value, index) <= self.turn:
                    gaps.setdefault(value, index - self.turn)
        # Views of views pass their gap on to the base, so the latest writers come first.
        for value in sorted(gaps, key=lambda value: -self._writer[value]):
            if (base := self._shown.get(value)) in self._writer:
                gaps[base] = min(gaps[value], gaps.get(base, gaps[value]))
        return gaps


def ties_early(schedule: Schedule) -> tuple[Schedule, tuple[int, ...]]:
    """Move steps that overwrite bytes for good to the earliest position after the last read.

    Returns:
        The schedule, and for each of its steps the index of the original step. The schedule is
        unchanged if a step reads the bytes under another name as well.
    """
    early, origin = rematerialized(schedule, -1, ())
    try:
        alias_groups_of(early)
    except PlanError:
        return schedule, tuple(range(len(schedule.steps)))
    return early, origin


def turn_of(schedule: Schedule) -> int:
    """Return the step after which most bytes are read that were written up to it."""
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
