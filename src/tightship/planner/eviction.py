"""Runs steps within a budget by evicting values, which are computed again where they are read.

Steps run in their order. Where bytes are missing, the value goes whose computing again is cheapest
for the bytes and the time that its absence frees: least cost / (bytes x time). Time is counted in
operations, to the next step that reads the value or from the last that read it. Its cost is that of
its step and of what else is absent and would be needed with it, in one of several `WEIGHINGS`.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from tightship.planner.recompute import NEVER
from tightship.planner.run_bytes import RunBytes
from tightship.planner.schedule import AliasKind, Schedule

RUNS_MAX = 12
"""Most runs of each step, on average."""


@dataclass(frozen=True, slots=True)
class Weighing:
    """A measure of what to evict.

    Attributes:
        power: Exponent of the time: the larger, the sooner values go that are read late.
        counts_readers: Whether absent values that are computed from a value count towards its cost,
            besides those that it is computed from.
        looks_back: Whether time is that since a value was last read, as where the steps to come are
            not known (Kirisame and others 2021); else that until it is read.
    """

    power: float
    counts_readers: bool
    looks_back: bool = False


WEIGHINGS = (
    Weighing(1.0, counts_readers=False),
    Weighing(0.5, counts_readers=False),
    Weighing(1.0, counts_readers=True),
    Weighing(0.5, counts_readers=True),
    Weighing(1.0, counts_readers=True, looks_back=True),
)


class Eviction:
    """Steps of a schedule, for any number of budgets.

    Attributes:
        bytes: Bytes of the steps.
        costs: Operations of each step.
        passed: Operations of the steps before each step; those without any count as one.
        writer: The step that writes each value.
        fixed: Roots that cannot be computed again, or live to the end.
    """

    def __init__(self, run_bytes: RunBytes, operations: Sequence[int]) -> None:
        """Find what each value is computed from, and which values must stay.

        Args:
            run_bytes: Bytes of the schedule's steps.
            operations: Operations of running each step again; `NEVER` for one that must not.
        """
        steps = run_bytes.schedule.steps
        self.bytes, self.costs = run_bytes, [max(0, count) for count in operations]
        self.passed = [0, *accumulate(cost + 1 for cost in self.costs)]
        self.writer = {value: index for index, step in enumerate(steps) for value in step.writes}
        self.fixed = run_bytes.kept | _fixed(run_bytes, operations)
        self._uses: dict[int, list[int]] = {}
        for index, reads in enumerate(run_bytes.reads):
            for root in reads:
                self._uses.setdefault(root, []).append(index)

    def runs(
        self, budget_bytes: int, weighing: Weighing, operations_max: float = inf
    ) -> list[int] | None:
        """Return runs of steps in order; None if the budget is not enough or takes too many.

        Args:
            budget_bytes: Most live bytes.
            weighing: What to evict.
            operations_max: Most operations to add.
        """
        return _Course(self, budget_bytes, weighing).runs(operations_max)

    def next_use(self, root: int, now: int) -> int | None:
        """Return the next step behind `now` that reads a root; None if there is none."""
        uses = self._uses.get(root, [])
        place = bisect_right(uses, now)
        return uses[place] if place < len(uses) else None

    def sources(self, root: int) -> tuple[int, ...]:
        """Return the roots that a root is computed from."""
        return self.bytes.reads[self.writer[root]]

    def results(self, root: int) -> Iterator[int]:
        """Yield the roots that are computed from a root."""
        for step in self._uses.get(root, ()):
            yield from self.bytes.writes[step]


def _fixed(run_bytes: RunBytes, operations: Sequence[int]) -> set[int]:
    """Return the roots that cannot be computed again, as a step must not run twice."""
    root, schedule = run_bytes.root, run_bytes.schedule
    tied = _tied(schedule, run_bytes)
    found = set(tied)
    for step, cost in zip(schedule.steps, operations, strict=True):
        if cost == NEVER or any(root[value] in tied for value in step.reads):
            found.update(root[value] for value in step.writes)
    return found


def _tied(schedule: Schedule, run_bytes: RunBytes) -> set[int]:
    """Return the roots in the arena that a step writes over for good."""
    return {
        run_bytes.root[alias.input]
        for step in schedule.steps
        for alias in step.aliases
        if alias.kind is AliasKind.TIED and run_bytes.sizes[run_bytes.root[alias.input]]
    }


class _Course:
    """One pass through the steps."""

    def __init__(self, eviction: Eviction, budget_bytes: int, weighing: Weighing) -> None:
        self._of, self._bytes, self._budget = eviction, eviction.bytes, budget_bytes
        self._weighing = weighing
        self._done: list[int] = []
        self._load = self._now = self._spent = 0
        self._here: dict[int, int] = {}
        """The run that wrote each root whose bytes are there."""
        self._absent: set[int] = set()
        """Roots that were there."""
        self._shown: dict[int, int] = {}
        """The run that had written the root's bytes when each value was written."""
        self._pinned: dict[int, int] = {}
        self._costs: dict[int, float] = {}
        self._read_at: dict[int, int] = {}

    def runs(self, operations_max: float) -> list[int] | None:
        """Run all steps."""
        count = len(self._bytes.schedule.steps)
        most = sum(self._of.costs) + operations_max
        for self._now in range(count):
            if not self._compute(self._now, most):
                return None
        return self._done

    def _compute(self, wanted: int, most: float) -> bool:
        """Run a step, and before it those whose results it lacks."""
        open_steps = [wanted]
        self._pin(wanted, 1)
        runs_max = RUNS_MAX * len(self._bytes.schedule.steps)
        while open_steps:
            lacking = self._lacking(open_steps[-1])
            if lacking is not None:
                if not self._of.fixed.isdisjoint(self._bytes.writes[lacking]):
                    return False
                open_steps.append(lacking)
                self._pin(lacking, 1)
                continue
            if not self._make_room(open_steps[-1]):
                return False
            self._run(open_steps.pop())
            left = self._of.passed[-1] - self._of.passed[self._now + 1]
            if self._spent + left > most + len(self._bytes.schedule.steps):
                return False
        return len(self._done) <= runs_max

    def _lacking(self, step: int) -> int | None:
        """Return the writer of a value that a step reads and that is not there; None if all are."""
        root, sizes = self._bytes.root, self._bytes.sizes
        for value in self._bytes.schedule.steps[step].reads:
            own = root[value]
            if (
                sizes[own]
                and value in self._of.writer
                and self._here.get(own, -1) != self._shown.get(value, -2)
            ):
                return self._of.writer[value]
        return None

    def _pin(self, step: int, change: int) -> None:
        for root in self._bytes.reads[step]:
            self._pinned[root] = self._pinned.get(root, 0) + change

    def _dies(self, root: int) -> bool:
        """Whether the step about to run is the last that reads a root."""
        is_last = self._pinned.get(root) == 1 and self._of.next_use(root, self._now) is None
        return is_last and root not in self._bytes.kept

    def _make_room(self, step: int) -> bool:
        sizes, fixed = self._bytes.sizes, self._of.fixed
        need = self._bytes.schedule.steps[step].scratch_bytes
        need += sum([sizes[root] for root in self._bytes.writes[step] if root not in self._here])
        need -= self._bytes.shared(step, self._dies)
        while self._load + need > self._budget:
            choices = [
                root for root in self._here if not self._pinned.get(root) and root not in fixed
            ]
            least = min(choices, key=self._worth, default=None)
            if least is None or self._cost(least) == inf:
                return False
            self._drop(least)
        return True

    def _run(self, step: int) -> None:
        self._pin(step, -1)
        self._spent += self._of.costs[step]
        for root in self._bytes.writes[step]:
            if root not in self._here:
                self._load += self._bytes.sizes[root]
                self._here[root] = len(self._done)
                self._forget(root)
                self._absent.discard(root)
        for value in self._bytes.schedule.steps[step].writes:
            self._shown[value] = self._here.get(self._bytes.root[value], -2)
        self._done.append(step)
        for root in (*self._bytes.reads[step], *self._bytes.writes[step]):
            self._read_at[root] = self._spent
            is_idle = root in self._here and not self._pinned.get(root)
            if (
                is_idle
                and root not in self._bytes.kept
                and self._of.next_use(root, self._now) is None
            ):
                self._drop(root)

    def _drop(self, root: int) -> None:
        del self._here[root]
        self._load -= self._bytes.sizes[root]
        self._absent.add(root)
        self._forget(root)

    def _forget(self, root: int) -> None:
        """Forget the costs that depend on whether a root is there."""
        open_roots, seen = [root], {root}
        while open_roots:
            each = open_roots.pop()
            self._costs.pop(each, None)
            near = [*self._of.results(each)]
            if self._weighing.counts_readers:
                near += self._of.sources(each)
            for other in near:
                if other in self._here:
                    self._costs.pop(other, None)
                elif other in self._absent and other not in seen:
                    seen.add(other)
                    open_roots.append(other)

    def _worth(self, root: int) -> float:
        until = self._of.next_use(root, self._now)
        if until is None:
            return 0.0
        if self._weighing.looks_back:
            time = self._spent - self._read_at[root] + 1
        else:
            time = self._of.passed[until] - self._of.passed[self._now]
        worth: float = self._cost(root) / (self._bytes.sizes[root] * time**self._weighing.power)
        return worth

    def _cost(self, root: int) -> float:
        """Return the operations of computing a root again, with all that is absent around it."""
        if root not in self._costs:
            self._costs[root] = self._cost_around(root)
        return self._costs[root]

    def _cost_around(self, root: int) -> float:
        steps, open_roots = {self._of.writer[root]}, [root]
        while open_roots:
            for read in self._of.sources(open_roots.pop()):
                if read not in self._here and self._of.writer[read] not in steps:
                    if read in self._of.fixed:
                        return inf
                    steps.add(self._of.writer[read])
                    open_roots.append(read)
        if self._weighing.counts_readers:
            open_roots = [root]
            while open_roots:
                for made in self._of.results(open_roots.pop()):
                    is_wanted = made in self._absent and self._of.next_use(made, self._now)
                    if is_wanted and self._of.writer[made] not in steps:
                        steps.add(self._of.writer[made])
                        open_roots.append(made)
        return sum([self._of.costs[step] for step in steps])
