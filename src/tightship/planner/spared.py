"""Leaves out runs where the bytes that they save are not needed."""

from bisect import bisect_left
from collections.abc import Sequence

from tightship.planner.run_bytes import RunBytes

PASSES_MAX = 4
"""Most passes over all runs; a pass that leaves none out is the last."""


def spared(
    run_bytes: RunBytes, operations: Sequence[int], runs: Sequence[int], budget_bytes: int
) -> list[int]:
    """Keep a value instead of computing it again wherever live bytes stay within a budget.

    The dearest runs for the bytes and time that keeping takes come first.

    Args:
        run_bytes: Bytes of the schedule's steps.
        operations: Operations of each step.
        runs: Steps in the order in which they run.
        budget_bytes: Most live bytes.

    Returns:
        Fewer runs in the same order, or as many; they exceed the budget only if `runs` do.
    """
    found = [runs[place] for place in run_bytes.needed(runs)]
    for _ in range(PASSES_MAX):
        sparing = _Sparing(run_bytes, found, budget_bytes)
        for token in sparing.again(operations):
            sparing.leave_out(token)
        if len(sparing.tokens) == len(found):
            break
        found = sparing.runs()
    return found


class _Sparing:
    """Runs by tokens, which stay the same while others are left out."""

    def __init__(self, run_bytes: RunBytes, runs: list[int], budget_bytes: int) -> None:
        self._bytes, self._given, self._budget = run_bytes, runs, budget_bytes
        self.tokens = list(range(len(runs)))
        self._lives = run_bytes.lives(runs)

    def runs(self) -> list[int]:
        """Return the runs that are left."""
        return [self._given[token] for token in self.tokens]

    def again(self, operations: Sequence[int]) -> list[int]:
        """Return the tokens of runs of steps that have run before, those worth most first."""
        last: dict[int, int] = {}
        worth: dict[int, float] = {}
        for place, step in enumerate(self._given):
            if step in last and self._lives.written[place]:
                held = self._held(last[step], place)
                worth[place] = operations[step] / (1 + held)
            last[step] = place
        return sorted(worth, key=lambda token: -worth[token])

    def leave_out(self, token: int) -> None:
        """Leave out a run if the budget allows."""
        place = bisect_left(self.tokens, token)
        if place == len(self.tokens) or self.tokens[place] != token:
            return
        step = self._given[token]
        before = next(
            (at for at in reversed(range(place)) if self._given[self.tokens[at]] == step), None
        )
        if before is None or not self._may_fit(before, place):
            return
        rest = self.tokens[:place] + self.tokens[place + 1 :]
        needed = self._bytes.needed([self._given[each] for each in rest])
        tokens = [rest[each] for each in needed]
        lives = self._bytes.lives([self._given[each] for each in tokens])
        if lives.load.max() <= self._budget:
            self.tokens, self._lives = tokens, lives

    def _held(self, before: int, place: int) -> int:
        """Return bytes times runs that keeping the results of an earlier run takes."""
        lives = self._lives
        return sum(
            lives.size[each] * max(0, place - lives.stop[each]) for each in lives.written[before]
        )

    def _may_fit(self, before: int, place: int) -> bool:
        """Whether the results of an earlier run fit beside what lives until this run."""
        lives = self._lives
        for each in lives.written[before]:
            between = lives.load[lives.stop[each] + 1 : place]
            if between.size and between.max() + lives.size[each] > self._budget:
                return False
        return True
