"""Dynamic Tensor Rematerialization (Kirisame and others 2021), simulated: greedy eviction by value.

Nodes run in the order given, and what they read is computed again where it was evicted. Where bytes
are missing, the value with the least h = cost / (size x staleness) goes; its cost is that of its
node and, as the paper's full heuristic has it, of all evicted values around it that would have to
run with it. Staleness is operations since the last read. A value that no later node of the given
order reads goes at once.
"""

from benchmarks.rematerialization.answer import Answer
from benchmarks.rematerialization.layers import Work

RUNS_MAX = 50
"""Runs for each node, on average, after which the simulation gives up."""


class OutOfBudgetError(Exception):
    """Nothing is left to evict, or everything is computed again and again."""


def dtr(work: Work, budget_bytes: int, *, is_local: bool = False) -> Answer:
    """Simulate a step.

    Args:
        work: The nodes.
        budget_bytes: Most live bytes.
        is_local: Whether only a value's own node counts as its cost.
    """
    simulation = _Simulation(work, budget_bytes, is_local)
    try:
        for node in range(work.count):
            simulation.compute(node)
            simulation.release(node)
    except (OutOfBudgetError, RecursionError):
        return Answer()
    return Answer(tuple(simulation.runs))


class _Simulation:
    def __init__(self, work: Work, budget_bytes: int, is_local: bool) -> None:  # noqa: FBT001
        self._work, self._budget, self._is_local = work, budget_bytes, is_local
        self._readers = work.readers()
        last = [max([node, *readers]) for node, readers in enumerate(self._readers)]
        self._dying: list[list[int]] = [[] for _ in last]
        for node, at in enumerate(last[:-1]):
            self._dying[at].append(node)
        self.runs: list[int] = []
        self._here: set[int] = set()
        self._gone: set[int] = set()
        self._pinned: dict[int, int] = {}
        self._read_at = [0] * work.count
        self._clock = 0
        self._load = 0

    def compute(self, node: int) -> None:
        """Run a node, and before it those whose values it lacks."""
        if len(self.runs) > RUNS_MAX * self._work.count:
            raise OutOfBudgetError
        reads = self._work.reads[node]
        for read in reads:
            self._pinned[read] = self._pinned.get(read, 0) + 1
        for read in reads:
            if read not in self._here:
                self.compute(read)
        self._make_room(self._work.sizes[node])
        self.runs.append(node)
        self._clock += self._work.costs[node]
        self._here.add(node)
        self._gone.discard(node)
        self._load += self._work.sizes[node]
        for read in (*reads, node):
            self._read_at[read] = self._clock
        for read in reads:
            self._pinned[read] -= 1

    def release(self, node: int) -> None:
        """Let go of the values that no later node of the given order reads."""
        for value in self._dying[node]:
            if value in self._here:
                self._evict(value)

    def _make_room(self, size: int) -> None:
        while self._load + size > self._budget:
            choices = [value for value in self._here if not self._pinned.get(value)]
            if not choices:
                raise OutOfBudgetError
            self._evict(min(choices, key=lambda value: (self._worth(value), value)))

    def _evict(self, value: int) -> None:
        self._here.remove(value)
        self._gone.add(value)
        self._load -= self._work.sizes[value]

    def _worth(self, value: int) -> float:
        cost = self._work.costs[value]
        if not self._is_local:
            cost += self._around(value, self._work.reads) + self._around(value, self._readers)
        staleness = self._clock - self._read_at[value] + 1
        return cost / (self._work.sizes[value] * staleness)

    def _around(self, value: int, near: object) -> int:
        """Return the operations of evicted values reached along edges through evicted ones."""
        assert isinstance(near, (list, tuple))
        found: set[int] = set()
        open_values = [value]
        while open_values:
            new = [v for v in near[open_values.pop()] if v in self._gone and v not in found]
            found.update(new)
            open_values.extend(new)
        return sum(self._work.costs[each] for each in found)
