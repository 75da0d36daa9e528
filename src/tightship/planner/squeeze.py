"""The smallest plan of a schedule, with every lever: order, recomputation, in-place, offsets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightship.planner.recompute import NEVER, Recomputation, Recomputed
from tightship.planner.reorder import least_order, reorder
from tightship.planner.schedule import Schedule
from tightship.planner.schedule_plan import SchedulePlan

PRICES = tuple(np.geomspace(0.2, 20_000, 128).tolist())
"""Operations that a byte kept may cost, from less than an addition to a large product's."""

STEADY = (1.0, 0.1)
"""Shares of a byte's price that do not depend on how long it is kept."""

_COARSE = 16
_TRIED = 8
_EFFORT = 20_000


@dataclass(frozen=True, slots=True)
class Squeezed:
    """A schedule's plan, and what was done for it.

    Attributes:
        plan: The plan; its schedule has steps that run again, in their new order.
        origin: For each of its steps the index of the one given that it is, or is a clone of.
        given_peak_bytes: The planned peak of the schedule given.
        reordered_peak_bytes: The same in a better order, nothing computed again.
        given_values: How many values the schedule given has; those of clones follow.
        operations: Of the schedule given, without steps that must not run twice.
        added_operations: What the clones add.
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
        """How many steps run a second time."""
        return len(self.origin) - len(set(self.origin))


def squeeze(
    schedule: Schedule,
    operations: Sequence[int],
    *,
    budget_bytes: int | None = None,
    operations_max: int | None = None,
) -> Squeezed:
    """The plan with the fewest added operations within a budget, or the smallest within those.

    Steps are reordered first. Where that is not enough, a price of bytes kept from the first part
    of the schedule for the second decides what is computed again (`Recomputation`), and steps are
    reordered once more; aliases and offsets are those of `plan_schedule`. The price is found by
    bisection, so that a smaller budget never costs fewer operations. No result is larger than the
    plan of the schedule given.

    Args:
        schedule: The steps, in an order in which they can run.
        operations: Of each step, what running it again costs; `NEVER` where it must not.
        budget_bytes: The peak to stay within; without one, as small as was found. A result above
            it is the smallest that was found.
        operations_max: The most operations to add.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can honour.
    """
    first = reorder(schedule)
    total = sum(count for count in operations if count != NEVER)
    peak = first.plan.plan.peak_bytes
    count = len(schedule.values)
    found = Squeezed(first.plan, first.order, first.given_peak_bytes, peak, count, total, 0)
    if budget_bytes is not None and peak <= budget_bytes:
        return found
    costs = [operations[step] for step in first.order]
    fronts = [_Front(Recomputation(first.plan.schedule, costs, steady)) for steady in STEADY]
    for made in _choices(fronts, budget_bytes, operations_max):
        better = reorder(made.schedule)
        if better.plan.plan.peak_bytes < found.plan.plan.peak_bytes:
            origin = tuple(first.order[made.origin[step]] for step in better.order)
            found = replace(
                found, plan=better.plan, origin=origin, added_operations=made.operations
            )
        if budget_bytes is None or found.plan.plan.peak_bytes <= budget_bytes:
            break
    return found


class _Front:
    """Choices by rising price: operations rise, and loads fall up to `stop`."""

    def __init__(self, choices: Recomputation) -> None:
        self._choices = choices
        self._found: dict[int, tuple[int, Recomputed]] = {}
        self._loads: dict[Recomputed, int] = {}
        loads = [(self.load(place), place) for place in range(0, len(PRICES), _COARSE)]
        self.stop = min(loads)[1]

    def load(self, place: int) -> int:
        """The largest load at a price."""
        return self._at(place)[0]

    def choice(self, place: int) -> Recomputed:
        """The choice at a price."""
        return self._at(place)[1]

    def first(self, holds: Callable[[int], bool]) -> int:
        """The first place up to `stop` where a property holds that holds from then on."""
        low, high = 0, self.stop
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle + 1, high)
        return low

    def _at(self, place: int) -> tuple[int, Recomputed]:
        if place not in self._found:
            made = self._choices.at_price(PRICES[place])
            if made not in self._loads:
                self._loads[made] = least_order(made.schedule, _EFFORT).load_bytes
            self._found[place] = (self._loads[made], made)
        return self._found[place]


def _choices(
    fronts: Sequence[_Front], budget_bytes: int | None, operations_max: int | None
) -> list[Recomputed]:
    """Choices to plan, best first: the next ones are for plans that end above their load."""
    most = float("inf") if operations_max is None else operations_max
    if budget_bytes is None:
        ends = [
            (front.load(place), front.choice(place).operations, index, place)
            for index, front in enumerate(fronts)
            for place in [_last_within(front, most)]
            if front.choice(place).operations <= most
        ]
        return [fronts[index].choice(place) for _, _, index, place in sorted(ends)]
    starts = [
        (
            front.load(place) > budget_bytes,
            front.choice(place).operations,
            front.load(place),
            index,
            place,
        )
        for index, front in enumerate(fronts)
        for place in [_first_within(front, budget_bytes)]
        if front.choice(place).operations <= most
    ]
    if not starts or min(starts)[0]:
        return _choices(fronts, None, operations_max)
    *_, index, place = min(starts)
    front = fronts[index]
    stop = min(front.stop + 1, place + _TRIED)
    more = [front.choice(at) for at in range(place, max(stop, place + 1))]
    return [choice for choice in more if choice.operations <= most]


def _first_within(front: _Front, budget_bytes: int) -> int:
    return front.first(lambda at: front.load(at) <= budget_bytes)


def _last_within(front: _Front, most: float) -> int:
    place = front.first(lambda at: front.choice(at).operations > most)
    return place - 1 if place and front.choice(place).operations > most else place
