"""Bounds from below what recomputation can reach: operations within a budget, and bytes."""

from collections.abc import Iterable, Sequence

import numpy as np

from tightship._core import min_cut
from tightship.planner.parallel.dependencies import dependencies
from tightship.planner.recompute import ALL, NEVER, ties_early, turn_of
from tightship.planner.schedule import BINDING, AliasKind, Schedule

PIVOTS = 64
"""Number of steps around the turn for which a bound is computed."""

_DEAREST = 2.0**20
_CHEAPEST = 2.0**-8
_HALVINGS = 16


def least_operations(schedule: Schedule, operations: Sequence[int], budget_bytes: int) -> int:
    """Bound from below the operations that any execution within a memory budget adds.

    Take any step, the *pivot*. When it first runs, all its ancestors have run and none of its
    descendants. The values that descendants read of ancestors then either lie within the budget,
    beside the pivot's own operands, or are computed again later from values that do. For a price
    of bytes the cheapest choice is a minimum cut, and its cost less the price of the budget is a
    bound (Lagrangian relaxation of the budget). The result is the largest bound over prices and
    pivots. The bound holds for any order, aliases and offsets, and if steps run more than twice.

    Args:
        schedule: The steps, in an order in which they can run.
        operations: Operations of running each step again; `NEVER` for one that must not.
        budget_bytes: The peak to stay within; donated bytes are available in addition.

    Returns:
        Operations; 0 if nothing needs to be computed again.
    """
    schedule, order = ties_early(schedule)
    operations = [operations[step] for step in order]
    steps = range(len(schedule.steps))
    before: list[list[int]] = [[] for _ in steps]
    behind: list[list[int]] = [[] for _ in steps]
    for one, other in dependencies(schedule):
        before[other].append(one)
        behind[one].append(other)
    donated_bytes = sum([value.size_bytes for value in schedule.values if value.donated])
    room_bytes = budget_bytes + donated_bytes
    first = max(0, turn_of(schedule) + 1 - PIVOTS // 2)
    pivots = steps[first : first + PIVOTS]
    bounds = [
        _Pivot(schedule, operations, pivot, before, behind).least(room_bytes) for pivot in pivots
    ]
    return max(bounds, default=0)


def least_bytes(schedule: Schedule) -> int:
    """Bound from below the peak of any execution, whatever its order and however often steps run.

    Each step runs at least once, beside its operands, its scratch and its outputs, and all outputs
    of the schedule exist at the end. Values that show the same bytes, or may lie in those of a
    concatenation, count once or not at all, as do outputs that may be written over an input.

    Args:
        schedule: The steps, in any order.

    Returns:
        Bytes of an arena; donated bytes, which may hold values too, are subtracted.

    Complexity: O(values + reads).
    """
    values = schedule.values
    root = list(range(len(values)))
    for alias in (alias for step in schedule.steps for alias in step.aliases):
        if alias.kind in BINDING:
            root[alias.output] = root[alias.input]
    outside = {root[index] for index, value in enumerate(values) if value.external}
    over: set[int] = set()
    for alias in (alias for step in schedule.steps for alias in step.aliases):
        if alias.kind is AliasKind.PART:
            outside.add(root[alias.input])
        else:
            over.add(alias.output)

    def together(shown: Iterable[int]) -> int:
        sizes: dict[int, int] = {}
        for value in shown:
            size = 0 if root[value] in outside else values[value].size_bytes
            sizes[root[value]] = max(size, sizes.get(root[value], 0))
        return sum(sizes.values())

    steps = [
        step.scratch_bytes + together((*step.reads, *(v for v in step.writes if v not in over)))
        for step in schedule.steps
    ]
    donated_bytes = sum([value.size_bytes for value in values if value.donated])
    return max(0, max([together(schedule.outputs), *steps]) - donated_bytes)


class _Pivot:
    """The values that can lie in the budget when a step first runs, as a network of choices.

    Nodes are values (needed from then on), steps (run again), and source and sink.
    """

    def __init__(
        self,
        schedule: Schedule,
        operations: Sequence[int],
        pivot: int,
        before: Sequence[Sequence[int]],
        behind: Sequence[Sequence[int]],
    ) -> None:
        self._schedule = schedule
        self._operations = operations
        self._columns: list[tuple[int, int, int, int]] = []
        early = _reached(pivot, before) - {pivot}
        self._written = {value for index in early for value in schedule.steps[index].writes}
        self._operands = frozenset(schedule.steps[pivot].reads)
        self._parts = {
            alias.input
            for step in schedule.steps
            for alias in step.aliases
            if alias.kind is AliasKind.PART
        }
        self._own_bytes = _own_bytes(schedule, pivot)
        self._ends = len(schedule.values) + len(schedule.steps)
        for value in {v for i in _reached(pivot, behind) for v in schedule.steps[i].reads}:
            self._needs(self._ends, value)
        for index in early:
            self._add_step(index)

    def least(self, room_bytes: int) -> int:
        """Return the largest bound over prices of a byte."""
        columns = np.array(self._columns, np.int64).reshape(-1, 4).T
        edges, limits, sizes = np.ascontiguousarray(columns[:2]), columns[2], columns[3]
        low, high, best = _CHEAPEST, _DEAREST, 0
        # The bound is concave in the price; bisection of its logarithm follows the sign of the
        # slope.
        for _ in range(_HALVINGS):
            price = float(np.sqrt(low * high))
            capacity = np.minimum(limits + sizes * price, ALL).astype(np.int64)
            side = min_cut(self._ends + 2, edges, capacity, self._ends, self._ends + 1)
            cut = (side[edges[0]] == 1) & (side[edges[1]] == 0)
            room = room_bytes - self._own_bytes
            best = max(best, int(capacity[cut].sum() - np.ceil(price * room)))
            low, high = (price, high) if sizes[cut].sum() > room else (low, price)
        return best

    def _add_step(self, index: int) -> None:
        step, node = self._schedule.steps[index], len(self._schedule.values) + index
        cost = self._operations[index]
        self._add(node, self._ends + 1, ALL if cost == NEVER else cost)
        shown = {a.output: a.input for a in step.aliases if a.kind is AliasKind.VIEW}
        for value in dict.fromkeys(step.reads):
            self._needs(node, value)
        for value in step.writes:
            if value in shown:
                self._needs(value, shown[value])
            elif not self._schedule.values[value].external:
                size = 0 if value in self._parts else self._schedule.values[value].size_bytes
                self._add(value, self._ends + 1 if value in self._operands else node, 0, size)

    def _needs(self, node: int, value: int) -> None:
        if value in self._written:
            self._add(node, value, ALL)

    def _add(self, one: int, other: int, limit: int, size_bytes: int = 0) -> None:
        self._columns.append((one, other, limit, size_bytes))


def _own_bytes(schedule: Schedule, index: int) -> int:
    """Return the scratch of a step and the bytes of its outputs that need new memory."""
    step = schedule.steps[index]
    over = {alias.output for alias in step.aliases}
    sizes = [
        schedule.values[value].size_bytes
        for value in step.writes
        if value not in over and not schedule.values[value].external
    ]
    return step.scratch_bytes + sum(sizes)


def _reached(start: int, near: Sequence[Sequence[int]]) -> set[int]:
    """Return a step and all steps that edges lead to from it."""
    found, open_steps = {start}, [start]
    while open_steps:
        new = [step for step in near[open_steps.pop()] if step not in found]
        found.update(new)
        open_steps.extend(new)
    return found
