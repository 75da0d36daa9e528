"""Reorders steps to lower the peak, and never to raise it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from tightship._core import StepTraffic
from tightship.planner.alias_group import alias_groups_of
from tightship.planner.parallel.dependencies import dependencies, edge_columns
from tightship.planner.parallel.touched import touched_groups
from tightship.planner.planning import place_schedule
from tightship.planner.problem import Int64Array
from tightship.planner.schedule import AliasKind, Schedule
from tightship.planner.schedule_plan import SchedulePlan

EFFORT = 3_000_000
"""Default number of extensions of a set of executed steps by one step; about 0.3 s."""


@dataclass(frozen=True, slots=True)
class Order:
    """An order of a schedule's steps, with the peak of its live bytes.

    Attributes:
        steps: Indices of the original steps, in the order found.
        live_bytes: Largest live bytes of any step, with IN_PLACE aliases between equal sizes taken.
        is_least: Whether it is proved that no order has a smaller peak of live bytes.
    """

    steps: tuple[int, ...]
    live_bytes: int
    is_least: bool


@dataclass(frozen=True, slots=True)
class Reordered:
    """The plan of a schedule in a better order, or in its own.

    Attributes:
        plan: The plan; its schedule has the steps in their new order.
        order: Indices of the original steps, in the new order.
        given_peak_bytes: The planned peak in the original order.
        lower_bound_bytes: Bytes that every order needs, if that was proved; otherwise 0.
    """

    plan: SchedulePlan
    order: tuple[int, ...]
    given_peak_bytes: int
    lower_bound_bytes: int


def reorder(schedule: Schedule, effort: int = EFFORT) -> Reordered:
    """Find the smallest plan over orders of a schedule's steps.

    Orders keep to `dependencies`. The original order is a candidate, so the result is never worse;
    of equal peaks it wins. Live bytes are minimal, unless `effort` runs out, if the schedule
    consists of parts of at most 64 steps, separated by steps that all others come before or after.

    Args:
        schedule: The steps, in an order in which they can run.
        effort: Extensions of a set of executed steps by one step, about ten million a second.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can satisfy.
    """
    given = place_schedule(schedule)
    own = tuple(range(len(schedule.steps)))
    found = least_order(schedule, effort)
    # The search counts no aliases between different sizes, no parts and no donated bytes. With any
    # of these a plan may be smaller, so its result is then not a lower bound.
    is_offered_more = any(
        schedule.values[alias.input].donated
        or alias.kind is AliasKind.PART
        or schedule.values[alias.input].size_bytes != schedule.values[alias.output].size_bytes
        for step in schedule.steps
        for alias in step.aliases
    )
    bound = found.live_bytes if found.is_least and not is_offered_more else 0
    if found.steps != own:
        other = place_schedule(in_order(schedule, found.steps))
        if other.plan.peak_bytes < given.plan.peak_bytes:
            return Reordered(other, found.steps, given.plan.peak_bytes, bound)
    return Reordered(given, own, given.plan.peak_bytes, bound)


def in_order(schedule: Schedule, order: Sequence[int]) -> Schedule:
    """Return the schedule with its steps in another order."""
    return replace(schedule, steps=tuple([schedule.steps[index] for index in order]))


def least_order(schedule: Schedule, effort: int = EFFORT) -> Order:
    """Find an order with the smallest peak of live bytes; the original order wins ties.

    Live bytes are counted with the aliases that bind, and with IN_PLACE aliases between values of
    equal size.

    Args:
        schedule: The steps, in an order in which they can run.
        effort: Extensions of a set of executed steps by one step; `EFFORT` by default.
    """
    order, live_bytes, is_least = _traffic(schedule).least_order(
        edge_columns(dependencies(schedule)), effort
    )
    return Order(tuple(order.tolist()), live_bytes, is_least)


def _traffic(schedule: Schedule) -> StepTraffic:
    groups = alias_groups_of(schedule)
    placed = [group for group in dict.fromkeys(groups) if not group.external]
    index_of = {group: index for index, group in enumerate(placed)}
    touched: list[list[int]] = [[] for _ in schedule.steps]
    for group, steps in touched_groups(schedule, groups).items():
        if group in index_of:
            for step in steps:
                touched[step].append(index_of[group])
    over = [
        [
            (index_of[groups[alias.output]], index_of[groups[alias.input]])
            for alias in step.aliases
            if alias.kind is AliasKind.IN_PLACE
            and groups[alias.output] in index_of
            and groups[alias.input] in index_of
            and groups[alias.output] is not groups[alias.input]
        ]
        for step in schedule.steps
    ]
    pairs = [pair for each in over for pair in each]
    return StepTraffic(
        (_row([group.size_bytes for group in placed]), _row([group.is_kept for group in placed])),
        (_stops(touched), _row([group for each in touched for group in each])),
        _row([step.scratch_bytes for step in schedule.steps]),
        (_stops(over), _row([new for new, _ in pairs]), _row([old for _, old in pairs])),
    )


def _row(numbers: Sequence[int]) -> Int64Array:
    return np.array(numbers, np.int64)


def _stops(rows: Sequence[Sequence[object]]) -> Int64Array:
    return _row(list(accumulate(map(len, rows))))
