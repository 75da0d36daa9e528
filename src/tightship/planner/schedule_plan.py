"""The plan of a schedule: in-place aliases are chosen together with the offsets."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from tightship.planner.bound import lower_bound
from tightship.planner.liveness import NO_BUFFER, Buffers, problem_of
from tightship.planner.plan import Plan
from tightship.planner.portfolio import solve
from tightship.planner.schedule import Alias, Schedule

SEARCH_PAIRS = 40_000_000
"""Pairs of buffers that dropping aliases may look at, over all its plans."""

SEARCH_PLANS_MAX = 24
"""Plans that dropping aliases may make."""


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """A plan of a schedule: which buffer each value and scratch has, and where that lies."""

    schedule: Schedule
    buffers: Buffers
    plan: Plan

    def value_offset(self, value: int) -> int | None:
        """Bytes from the arena's base; None for a value outside the arena."""
        offset = self._offset(self.buffers.of_value[value])
        return None if offset is None else offset + self.buffers.inside.get(value, 0)

    def scratch_offset(self, step: int) -> int | None:
        """Bytes from the arena's base; None for a step without scratch."""
        return self._offset(self.buffers.of_scratch[step])

    def _offset(self, buffer: int) -> int | None:
        return None if buffer == NO_BUFFER else int(self.plan.offset_bytes[buffer])


def plan_schedule(schedule: Schedule) -> SchedulePlan:
    """The smallest plan found over choices of in-place aliases.

    First with all that keep the load low. A plan of those that ends above its lower bound is
    held against one without any, and then loses aliases of the buffers that end above the bound,
    as long as that makes it smaller. In-place aliases therefore never raise the peak; of equal
    peaks the plan with more of them wins.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can honour.
    """
    best = _planned(schedule, problem_of(schedule))
    if _is_tight(best) or not (best.buffers.in_place or best.buffers.parts):
        return best
    apart = problem_of(schedule, in_place=False)
    if lower_bound(apart.problem) < best.plan.peak_bytes:
        best = _smaller(best, _planned(schedule, apart))
    return best if _is_tight(best) else _with_aliases_dropped(best)


def _planned(schedule: Schedule, buffers: Buffers) -> SchedulePlan:
    return SchedulePlan(schedule, buffers, solve(buffers.problem))


def _with_aliases_dropped(best: SchedulePlan) -> SchedulePlan:
    """Drop aliases one after another from the buffers that end highest, while plans shrink."""
    plans = min(SEARCH_PLANS_MAX, SEARCH_PAIRS // max(1, best.plan.problem.count) ** 2)
    dropped: set[Alias] = set()
    tried: set[Alias] = set()
    while plans > 0 and not _is_tight(best):
        alias = next((alias for alias in _high(best) if alias not in tried), None)
        if alias is None:
            break
        tried.add(alias)
        plans -= 1
        other = _planned(best.schedule, problem_of(best.schedule, without={*dropped, alias}))
        if other.plan.peak_bytes < best.plan.peak_bytes:
            best = other
            dropped.add(alias)
            tried = set(dropped)
    return best


def _high(planned: SchedulePlan) -> Collection[Alias]:
    """Aliases within buffers that end above the lower bound, the highest first."""
    plan, of_value = planned.plan, planned.buffers.of_value
    tops = plan.offset_bytes + plan.problem.size_bytes
    above = np.flatnonzero(tops > plan.lower_bound_bytes)
    rank = {int(buffer): -int(tops[buffer]) for buffer in above}
    taken = (*planned.buffers.in_place, *planned.buffers.parts)
    held = [alias for alias in taken if of_value[alias.output] in rank]
    return sorted(held, key=lambda alias: rank[of_value[alias.output]])


def _is_tight(planned: SchedulePlan) -> bool:
    return planned.plan.peak_bytes == lower_bound(planned.buffers.problem)


def _smaller(one: SchedulePlan, other: SchedulePlan) -> SchedulePlan:
    return other if other.plan.peak_bytes < one.plan.peak_bytes else one
