"""Makes schedules whose steps run again where their results were evicted, and improves others."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from tightship.planner.eviction import WEIGHINGS, Eviction
from tightship.planner.recompute import Recomputation, Recomputed
from tightship.planner.run_bytes import RunBytes
from tightship.planner.spared import spared


class Evicted:
    """Schedules of `Recomputation`'s steps, written from runs."""

    def __init__(self, recomputation: Recomputation) -> None:
        """Take the steps; nothing is computed before it is needed."""
        self._of = recomputation

    def within(self, budget_bytes: int, most: float) -> Iterator[Recomputed]:
        """Yield schedules by eviction that add at most so many operations, each fewer than before.

        Args:
            budget_bytes: Most live bytes in the order in which steps run.
            most: Most operations to add.
        """
        for weighing in WEIGHINGS:
            runs = self._eviction.runs(budget_bytes, weighing, 2 * most)
            made = None if runs is None else self._spared(runs, budget_bytes)
            if made is not None and made.operations <= most:
                most = made.operations - 1
                yield made

    def improved(self, made: Recomputed, budget_bytes: int) -> Recomputed | None:
        """Return a schedule with fewer runs that stays within a budget; None if there is none."""
        own = int(self._bytes.lives(made.origin).load.max(initial=0))
        better = self._spared(made.origin, max(budget_bytes, own))
        return better if better is not None and better.operations < made.operations else None

    @cached_property
    def _bytes(self) -> RunBytes:
        return RunBytes(self._of.schedule)

    @cached_property
    def _eviction(self) -> Eviction:
        return Eviction(self._bytes, self._of.operations)

    def _spared(self, runs: Sequence[int], budget_bytes: int) -> Recomputed | None:
        operations = self._of.operations
        return self._of.replayed(spared(self._bytes, operations, runs, budget_bytes))
