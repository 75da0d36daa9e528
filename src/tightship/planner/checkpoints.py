"""Runs the first part of a schedule again between checkpoints, nested as deep as memory wants."""

from collections.abc import Collection, Sequence

import numpy as np

from tightship._core import CheckpointTable
from tightship.errors import PlanError
from tightship.planner.alias_group import alias_groups_of
from tightship.planner.chain import Chain
from tightship.planner.recompute import NEVER, Recomputed
from tightship.planner.replayed import replayed

SLOTS = 256
"""Parts of the budget in which the bytes of a chain are counted."""

STEPS_MAX = 20_000
"""Most steps of a schedule with checkpoints."""


class Checkpoints:
    """Choices of checkpoints for a schedule whose steps may run again already.

    Attributes:
        made: The schedule without checkpoints.
        chain: Its atoms.
    """

    def __init__(
        self,
        made: Recomputed,
        operations: Sequence[int],
        turn: int,
        kept: Collection[int] = (),
    ) -> None:
        """View a schedule as a chain.

        Args:
            made: A schedule of `Recomputation`.
            operations: Operations of the steps that it was made of; `NEVER` for what runs once.
            turn: The last step of the first part of these.
            kept: Steps of the first part whose results are kept whatever they take.
        """
        self.made = made
        self._operations = operations
        own = [NEVER if step in kept else operations[step] for step in made.origin]
        self._turn = _first_part(made.origin, turn) - 1
        self.chain = Chain(made.schedule, own, self._turn)
        self._once = sum(count for count in own[: self._turn + 1] if count != NEVER)
        self._table_of: tuple[int, CheckpointTable] | None = None
        self._written: dict[tuple[int, int], Recomputed | None] = {}

    def added(self, unit_bytes: int, slots: int) -> int | None:
        """Estimate the operations added in so many slots; None if they are not enough."""
        found = self._table(unit_bytes).operations(slots)
        return None if found < 0 else self.made.operations + max(0, found - self._once)

    def written(self, unit_bytes: int, slots: int) -> Recomputed | None:
        """Return the schedule of a number of slots; None if the bytes do not allow one."""
        key = unit_bytes, slots
        if key not in self._written:
            self._written[key] = self._write(unit_bytes, slots)
        return self._written[key]

    def _write(self, unit_bytes: int, slots: int) -> Recomputed | None:
        table = self._table(unit_bytes)
        if table.operations(slots) < 0:
            return None
        runs = self.chain.runs(table.passes(slots).tolist())
        if len(runs) > STEPS_MAX:
            return None
        try:
            schedule, origin = replayed(self.made.schedule, runs, self._turn)
            alias_groups_of(schedule)
        except PlanError:
            return None
        own = tuple(self.made.origin[step] for step in origin)
        once = sum(self._operations)
        return Recomputed(schedule, own, sum(self._operations[step] for step in own) - once)

    def _table(self, unit_bytes: int) -> CheckpointTable:
        if self._table_of is None or self._table_of[0] != unit_bytes:
            self.release()
            rows, chain = self.chain.rows.copy(), self.chain
            rows[3:] = -(-rows[3:] // unit_bytes)
            matrices = -(-np.stack([chain.held, chain.peaks]) // unit_bytes)
            self._table_of = unit_bytes, CheckpointTable(rows, matrices, SLOTS)
        return self._table_of[1]

    def release(self) -> None:
        """Release the table, which takes megabytes; it is made again where it is needed."""
        self._table_of = None


def _first_part(origin: Sequence[int], turn: int) -> int:
    """Return the number of steps before the first that lies behind the turn or runs again."""
    last = -1
    for place, step in enumerate(origin):
        if step > turn or step <= last:
            return place
        last = step
    return len(origin)
