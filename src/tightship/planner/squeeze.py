"""Finds the smallest plan of a schedule by order, recomputation, in-place aliases and offsets."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge

from tightship.planner.recompute import NEVER, Recomputation, Recomputed, ties_early
from tightship.planner.reorder import least_order, reorder
from tightship.planner.schedule import Schedule
from tightship.planner.schedule_plan import SchedulePlan

PRICE_MAX = 2.0**20
"""Highest price of a kept byte in operations; no operation costs as much for a byte."""

_EFFORT = 20_000
_TRIED = 8


@dataclass(frozen=True, slots=True)
class Squeezed:
    """A schedule's plan, with the operations that were added for it.

    Attributes:
        plan: The plan; its schedule contains the clones, and the steps in their new order.
        origin: For each step of that schedule the index of the original step that it is or clones.
        given_peak_bytes: The planned peak of the original schedule.
        reordered_peak_bytes: The planned peak in a better order, without recomputation.
        given_values: Number of values of the original schedule; those of clones follow.
        operations: Operations of the original schedule, without steps that must not run twice.
        added_operations: Operations that the clones add.
    """

    plan: SchedulePlan
    origin: tuple[int, ...]
    given_peak_bytes: int
    reordered_peak_bytes: int
    given_values: int
    operations: int
    added_operations: int

    @property
    def clones(self) -> int:
        """Number of steps that run a second time."""
        return len(self.origin) - len(set(self.origin))


def squeeze(
    schedule: Schedule,
    operations: Sequence[int],
    *,
    budget_bytes: int | None = None,
    operations_max: int | None = None,
) -> Squeezed:
    """Find the plan with the fewest added operations within a budget, or the smallest plan.

    Steps are reordered first. If that is not enough, a price of bytes kept from the first part of
    the schedule for the second decides which steps run again (`Recomputation`). Between the choices
    of two prices, the steps up to some position follow the one choice and the steps after it the
    other, so that the values that are needed latest are given up first. Steps are then reordered
    again; aliases and offsets are those of `place_schedule`. Prices and positions are found by
    bisection of the live bytes in the order found for each, so a smaller budget never costs fewer
    operations. The result is never larger than the plan of the original schedule.

    Args:
        schedule: The steps, in an order in which they can run.
        operations: Operations of running each step again; `NEVER` for one that must not.
        budget_bytes: The peak to stay within. If no plan within it is found, the smallest plan is
            returned. None, the default, asks for the smallest plan.
        operations_max: The most operations to add; None, the default, sets no limit.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can satisfy.
    """
    first = reorder(schedule)
    total = sum(count for count in operations if count != NEVER)
    peak = first.plan.plan.peak_bytes
    count = len(schedule.values)
    found = Squeezed(first.plan, first.order, first.given_peak_bytes, peak, count, total, 0)
    if budget_bytes is not None and peak <= budget_bytes:
        return found
    early, own = ties_early(schedule)
    fronts = [
        _Front(Recomputation(each, [operations[step] for step in order]), order)
        for order, each in {own: early, first.order: first.plan.schedule}.items()
    ]
    most = float("inf") if operations_max is None else operations_max
    for front, made in _candidates(fronts, budget_bytes, most):
        better = reorder(made.schedule)
        if better.plan.plan.peak_bytes < found.plan.plan.peak_bytes:
            origin = tuple(front.order[made.origin[step]] for step in better.order)
            found = replace(
                found, plan=better.plan, origin=origin, added_operations=made.operations
            )
        if budget_bytes is None or found.plan.plan.peak_bytes <= budget_bytes:
            break
    return found


class _Front:
    """Choices by increasing operations, and intermediate choices between two neighbours.

    Of the steps in which two neighbours differ, the first ones in order follow the dearer choice.
    """

    def __init__(self, recomputation: Recomputation, order: Sequence[int]) -> None:
        self.order = order
        self._recomputation = recomputation
        self._ends = recomputation.choices(PRICE_MAX)
        self._loads: dict[Recomputed, int] = {}

    def within(self, budget_bytes: int, most: float) -> Iterator[Recomputed]:
        """Yield choices whose live bytes fit a budget and that add at most `most` operations."""
        for end, choice in enumerate(self._ends):
            if choice.kept_bytes <= budget_bytes and self.load(self._made(end)) <= budget_bytes:
                between = self._between(end, budget_bytes)
                return (made for made in between if made.operations <= most)
        return iter(())

    def smallest(self, most: float) -> Recomputed:
        """Return the examined choice of fewest live bytes with at most `most` operations."""
        best = self._made(0)
        for end in reversed(range(1, len(self._ends))):
            if self._ends[end].kept_bytes < self.load(best):
                made = self._last_within(end, most)
                best = min(best, made, key=lambda each: (self.load(each), each.operations))
        return best

    def load(self, made: Recomputed) -> int:
        """Return the peak of live bytes in an order that is found with little effort."""
        if made not in self._loads:
            self._loads[made] = least_order(made.schedule, _EFFORT).live_bytes
        return self._loads[made]

    def _between(self, end: int, budget_bytes: int) -> Iterator[Recomputed]:
        """Yield choices between two neighbours, from the first that keeps to a budget on."""
        steps = self._steps(end)
        first = _first(steps, lambda number: self.load(self._made(end, number)) <= budget_bytes)
        stride = max(1, (steps - first) // _TRIED)
        return (self._made(end, number) for number in range(first, steps + 1, stride))

    def _last_within(self, end: int, most: float) -> Recomputed:
        """Return as much of a choice as `most` operations allow; the first choice if none fits."""
        made = self._made(end)
        if made.operations <= most:
            return made
        if self._made(end - 1).operations > most:
            return self._made(0)
        number = _first(self._steps(end), lambda number: self._made(end, number).operations > most)
        made = self._made(end, max(0, number - 1))
        return made if made.operations <= most else self._made(0)

    def _steps(self, end: int) -> int:
        return len(self._ends[end - 1].again ^ self._ends[end].again) if end else 0

    def _made(self, end: int, number: int | None = None) -> Recomputed:
        after = self._ends[end].again
        if end == 0 or number is None:
            return self._recomputation.written(after)
        before = self._ends[end - 1].again
        return self._recomputation.written(before ^ frozenset(sorted(before ^ after)[:number]))


def _candidates(
    fronts: Sequence[_Front], budget_bytes: int | None, most: float
) -> Iterator[tuple[_Front, Recomputed]]:
    """Yield choices to plan, best first; later ones serve if a plan ends above its live bytes."""
    if budget_bytes is not None:
        within = [_paired(front, front.within(budget_bytes, most)) for front in fronts]
        yield from merge(*within, key=lambda pair: pair[1].operations)
    smallest = [(front, front.smallest(most)) for front in fronts]
    yield min(smallest, key=lambda pair: (pair[0].load(pair[1]), pair[1].operations))


def _paired(front: _Front, choices: Iterator[Recomputed]) -> Iterator[tuple[_Front, Recomputed]]:
    return ((front, made) for made in choices)


def _first(stop: int, holds: Callable[[int], bool]) -> int:
    """Return the smallest number up to `stop` at which a monotonic property holds, by bisection."""
    low, high = 0, stop
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
