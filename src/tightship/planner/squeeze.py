"""Finds the smallest plan of a schedule by order, recomputation, in-place aliases and offsets."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import merge

from tightship.planner.checkpoints import SLOTS, Checkpoints
from tightship.planner.evicted import Evicted
from tightship.planner.recompute import NEVER, Recomputation, Recomputed, ties_early
from tightship.planner.recompute_bound import least_bytes, least_operations
from tightship.planner.reorder import least_order, reorder
from tightship.planner.schedule import Schedule
from tightship.planner.schedule_plan import SchedulePlan

PRICE_MAX = 2.0**20
"""Highest price of a kept byte in operations; no operation costs as much for a byte."""

_EFFORT = 20_000
_TRIED = 8

NEAR = 1.15
"""Operations over their bound up to which a plan is not improved by checkpoints, which take longer
to find than they could save."""

BASES_MAX = 6
"""Most choices of a front for which checkpoints are tried."""

SMALLER = 4
"""Budgets that eviction is tried with for the smallest plan."""

TIGHTER = (1.0, 0.98, 0.95)
"""Shares of a budget for live bytes, tried where the plan's offsets need the rest."""

GUESSES = 8
"""Most numbers of slots whose live bytes are found for one budget."""


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
    bisection of the live bytes in the order found for each. Unless a choice is near a bound, some
    are tried with nested checkpoints as well (`Checkpoints`). The result is never larger than the
    plan of the original schedule.

    Args:
        schedule: The steps, in an order in which they can run.
        operations: Operations of running each step again; `NEVER` for one that must not.
        budget_bytes: The peak to stay within. If no plan within it is found, the smallest plan is
            returned. None, the default, asks for the smallest plan.
        operations_max: The most operations to add; None, the default, sets no limit.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can satisfy.
    """
    return Squeezing(schedule, operations).within(budget_bytes, operations_max)


class Squeezing:
    """Plans of one schedule for any number of budgets, which share what was found before.

    Attributes:
        schedule: The steps, in the order given.
        plain: The plan in a better order, without recomputation.
    """

    def __init__(self, schedule: Schedule, operations: Sequence[int]) -> None:
        """Reorder the steps.

        Args:
            schedule: As for `squeeze`.
            operations: As for `squeeze`.
        """
        first = reorder(schedule)
        total = sum(count for count in operations if count != NEVER)
        peak, count = first.plan.plan.peak_bytes, len(schedule.values)
        self.plain = Squeezed(
            first.plan, first.order, first.given_peak_bytes, peak, count, total, 0
        )
        self.schedule, self._operations = schedule, operations
        self._planned: dict[Recomputed, Squeezed] = {}
        self._least: dict[float, Squeezed] = {}

    def within(self, budget_bytes: int | None, operations_max: int | None = None) -> Squeezed:
        """Find a plan as `squeeze` does."""
        found = self.plain
        if budget_bytes is not None and found.plan.plan.peak_bytes <= budget_bytes:
            return found
        most = float("inf") if operations_max is None else operations_max
        if budget_bytes is None:
            return self._smallest(most)
        return self._cheapest(budget_bytes, most) or self._smallest(most)

    def _cheapest(self, budget_bytes: int, most: float) -> Squeezed | None:
        """Return the plan within a budget that adds fewest operations; None if none was found."""
        choices = [_paired(front, front.within(budget_bytes, most)) for front in self._fronts]
        by_price = merge(*choices, key=lambda pair: pair[1].operations)
        found = self._first(by_price, budget_bytes)
        if found is None or not self._is_near_bound(found, budget_bytes):
            for way in (_checkpointed, _evicted):
                less = most if found is None else min(most, found.added_operations - 1)
                found = self._first(way(self._fronts, budget_bytes, less), budget_bytes) or found
        most = most if found is None else min(most, found.added_operations - 1)
        # A plan may turn out smaller than its live bytes in the order that was found at first.
        for other in self._planned.values():
            if other.plan.plan.peak_bytes <= budget_bytes and other.added_operations <= most:
                found, most = other, other.added_operations - 1
        return found

    def _first(
        self, choices: Iterable[tuple["_Front", Recomputed]], budget_bytes: int
    ) -> Squeezed | None:
        """Return the plan of the first choice within a budget, without runs that it spares."""
        for front, made in choices:
            found = self._plan(front, made)
            if found.plan.plan.peak_bytes <= budget_bytes:
                better = front.evicted.improved(made, budget_bytes)
                other = found if better is None else self._plan(front, better)
                return other if other.plan.plan.peak_bytes <= budget_bytes else found
        return None

    def _is_near_bound(self, found: Squeezed, budget_bytes: int) -> bool:
        least = least_operations(self.schedule, self._operations, budget_bytes)
        return found.added_operations <= NEAR * least

    def _smallest(self, most: float) -> Squeezed:
        """Return the smallest plan that is found with at most so many operations added."""
        if most in self._least:
            return self._least[most]
        smallest = [(front, front.smallest(most)) for front in self._fronts]
        front, made = min(smallest, key=lambda pair: (pair[0].load(pair[1]), pair[1].operations))
        found = _smaller(self.plain, self._plan(front, made))
        budget = found.plan.plan.peak_bytes - 1
        for front, made in _checkpointed(self._fronts, budget, most, smallest=True):
            found = _smaller(found, self._plan(front, made))
        low = least_bytes(self.schedule)
        for _ in range(SMALLER):
            budget = (low + found.plan.plan.peak_bytes) // 2
            smaller = self._first(_evicted(self._fronts, budget, most, (1.0,)), budget)
            found, low = (found, budget) if smaller is None else (smaller, low)
        self._least[most] = found
        return found

    @cached_property
    def _fronts(self) -> list["_Front"]:
        early, own = ties_early(self.schedule)
        schedules = {own: early, self.plain.origin: self.plain.plan.schedule}
        return [
            _Front(Recomputation(each, [self._operations[step] for step in order]), order)
            for order, each in schedules.items()
        ]

    def _plan(self, front: "_Front", made: Recomputed) -> Squeezed:
        if made not in self._planned:
            better = reorder(made.schedule)
            origin = tuple(front.order[made.origin[step]] for step in better.order)
            self._planned[made] = replace(
                self.plain, plan=better.plan, origin=origin, added_operations=made.operations
            )
        return self._planned[made]


def _smaller(one: Squeezed, other: Squeezed) -> Squeezed:
    return other if other.plan.plan.peak_bytes < one.plan.plan.peak_bytes else one


class _Front:
    """Choices by increasing operations, and intermediate choices between two neighbours.

    Of the steps in which two neighbours differ, the first ones in order follow the dearer choice.
    """

    def __init__(self, recomputation: Recomputation, order: Sequence[int]) -> None:
        self.order = order
        self.evicted = Evicted(recomputation)
        self._recomputation = recomputation
        self._ends = recomputation.choices(PRICE_MAX)
        self._loads: dict[Recomputed, int] = {}
        self._checkpoints: dict[Recomputed, Checkpoints] = {}
        self._kept: dict[frozenset[int], Checkpoints] = {}

    def checkpoints(self, most: float) -> list[Checkpoints]:
        """Make checkpoints for some of the choices, of those with at most so many operations."""
        stride = -(-len(self._ends) // BASES_MAX)
        for end in range(0, len(self._ends), stride):
            again = self._ends[end].again
            made = self._made(end)
            if made.operations <= most and made not in self._checkpoints:
                self._checkpoints[made] = self._over(made, frozenset())
            if again and again not in self._kept:
                first = frozenset(range(self._recomputation.turn + 1))
                self._kept[again] = self._over(self._made(0), first - again)
        found = [each for made, each in self._checkpoints.items() if made.operations <= most]
        return [*found, *self._kept.values()]

    def _over(self, made: Recomputed, kept: frozenset[int]) -> Checkpoints:
        return Checkpoints(made, self._recomputation.operations, self._recomputation.turn, kept)

    def nested(self, which: Checkpoints, budget_bytes: int, most: float) -> Recomputed | None:
        """Return the schedule of most slots whose live bytes fit a budget; None if none does."""
        unit = _unit_bytes(budget_bytes)
        least = _least_slots(which, unit, most)
        if least is None:
            return None
        low, high, guess, best = least - 1, SLOTS + 1, max(least, budget_bytes // unit), None
        for _ in range(GUESSES):
            if not low < guess < high:
                guess = (low + high) // 2
            if guess == low:
                break
            made = which.written(unit, guess)
            load = None if made is None else self.load(made)
            if load is not None and load <= budget_bytes:
                low, best = guess, made
            else:
                high = guess
            guess += (budget_bytes - load) // unit if load is not None else 0
        return best

    def fewest(self, which: Checkpoints, budget_bytes: int, most: float) -> Recomputed | None:
        """Return the schedule in as few slots as possible; None if it exceeds a budget."""
        best = None
        while (least := _least_slots(which, _unit_bytes(budget_bytes), most)) is not None:
            made = which.written(_unit_bytes(budget_bytes), least)
            if made is None or made.operations > most or self.load(made) > budget_bytes:
                break
            best, budget_bytes = made, self.load(made) - 1
        return best

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


def _checkpointed(
    fronts: Sequence[_Front], budget_bytes: int, most: float, *, smallest: bool = False
) -> Iterator[tuple[_Front, Recomputed]]:
    """Yield schedules with checkpoints within a budget, by increasing operations."""
    if budget_bytes <= 0:
        return
    pairs = [(front, which) for front in fronts for which in front.checkpoints(most)]
    unit = _unit_bytes(budget_bytes)
    guesses = {pair: pair[1].added(unit, SLOTS) for pair in pairs}
    found: list[tuple[_Front, Recomputed]] = []
    for pair in sorted(pairs, key=lambda pair: guesses[pair] or 0):
        front, which = pair
        guess = guesses[pair]
        if guess is None or guess > most:
            continue
        made = (front.fewest if smallest else front.nested)(which, budget_bytes, most)
        if made is not None and made.operations <= most:
            found.append((front, made))
            if not smallest:
                most = made.operations
    for _, which in pairs:
        which.release()
    yield from sorted(found, key=lambda each: each[1].operations)


def _evicted(
    fronts: Sequence[_Front],
    budget_bytes: int,
    most: float,
    shares: Sequence[float] = TIGHTER,
) -> Iterator[tuple[_Front, Recomputed]]:
    """Yield schedules by eviction in the given order, the fewest operations first in a budget."""
    front = fronts[0]
    for share in shares:
        found = [*front.evicted.within(int(budget_bytes * share), most)]
        yield from [(front, made) for made in reversed(found)]


def _unit_bytes(budget_bytes: int) -> int:
    """Return the bytes of a slot; slots are a little more than a budget, as they are rounded up."""
    return -(-budget_bytes * 9 // (8 * SLOTS))


def _least_slots(which: Checkpoints, unit_bytes: int, most: float) -> int | None:
    """Return the fewest slots in which a chain runs with at most so many operations."""

    def holds(slots: int) -> bool:
        added = which.added(unit_bytes, slots)
        return added is not None and added <= most

    found = _first(SLOTS + 1, lambda slots: slots > SLOTS or holds(slots))
    return None if found > SLOTS else found


def _paired(front: _Front, choices: Iterator[Recomputed]) -> Iterator[tuple[_Front, Recomputed]]:
    return ((front, made) for made in choices)


def _first(stop: int, holds: Callable[[int], bool]) -> int:
    """Return the smallest number up to `stop` at which a monotonic property holds, by bisection."""
    low, high = 0, stop
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
