"""Plans memory so that independent steps may run in any order."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tightship._core import BufferConflicts, StepOrder
from tightship.errors import PlanError
from tightship.planner.bound import lower_bound
from tightship.planner.buffers import Buffers
from tightship.planner.liveness import problem_of
from tightship.planner.parallel.dependencies import dependencies, step_order
from tightship.planner.parallel.path_colours import path_colours
from tightship.planner.parallel.safe_aliases import unsafe_aliases
from tightship.planner.parallel.touched import buffer_order
from tightship.planner.placements import order as orders
from tightship.planner.plan import Plan, status_of
from tightship.planner.portfolio import OrderOf, place
from tightship.planner.problem import Int64Array, Problem
from tightship.planner.schedule import Schedule
from tightship.planner.schedule_plan import SchedulePlan
from tightship.planner.stored_order import order_of
from tightship.planner.verify import verify
from tightship.planner.verify_parallel import verify_parallel


def as_serial(problem: Problem) -> Int64Array:
    """Order buffers by their offsets in a plan for steps that run one after another."""
    return order_of(place(problem))


ORDERS: dict[str, OrderOf] = {
    "size": orders.by_size,
    "size_and_lifetime": orders.by_size_and_lifetime,
    "load": orders.by_load,
    "area": orders.by_area,
    "load_and_area": orders.by_load_and_area,
    "start": orders.by_start,
    "serial": as_serial,
}
"""Orders in which buffers are placed, by the name that a plan reports as its strategy."""

NO_GROUPS: Int64Array = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Paths:
    """Paths along which buffers share bytes, as in the memory note.

    Attributes:
        count: Number of paths to colour; steps outside of them stay alone.
        is_required: Whether buffers of different paths never share bytes. If False, they share
            bytes where that makes the plan smaller.
    """

    count: int
    is_required: bool = False


def plan_parallel(schedule: Schedule, paths: Paths | None = None) -> SchedulePlan:
    """Find the smallest plan that adds no order to the steps.

    Two buffers share bytes only if every step that touches the one is an ancestor, through values,
    of every step that touches the other. Optional aliases are taken under the same condition. The
    plan's lower bound is that of steps that run one after another.

    Args:
        schedule: Values and steps.
        paths: Paths along which sharing is preferred or required; None, the default, prefers none.

    Raises:
        PlanError: As `problem_of`; or fewer than one path.
        InvalidPlanError: Verification found the placement wrong, which is a defect.

    Complexity: O(m * m) for m buffers, in time and in bits.
    """
    edges = dependencies(schedule)
    order = step_order(schedule, edges)
    planned = _Parallel(schedule, order, lower_bound(problem_of(schedule).problem))
    if paths is None:
        return planned.smallest(NO_GROUPS)
    if paths.count < 1:
        raise PlanError(f"The count of paths is {paths.count}; it must be at least 1.")
    along = planned.smallest(path_colours(len(schedule.steps), edges, paths.count))
    if paths.is_required or along.plan.status == "optimal":
        return along
    free = planned.smallest(NO_GROUPS)
    return free if free.plan.peak_bytes < along.plan.peak_bytes else along


@dataclass(frozen=True, slots=True)
class _Parallel:
    schedule: Schedule
    order: StepOrder
    bound_bytes: int

    def smallest(self, groups: Int64Array) -> SchedulePlan:
        """Find the smallest plan; buffers first touched by steps of different groups stay apart."""
        best: SchedulePlan | None = None
        for buffers in self._choices():
            group = groups[buffers.problem.start_step] if groups.size else NO_GROUPS
            touched = buffer_order(self.schedule, buffers, self.order)
            bound = min(self.bound_bytes, lower_bound(buffers.problem))
            plan = _placed(buffers, BufferConflicts(touched, group), bound)
            if best is None or plan.peak_bytes < best.plan.peak_bytes:
                best = SchedulePlan(self.schedule, buffers, plan)
            if plan.peak_bytes <= self.bound_bytes:
                break
        assert best is not None
        verify_parallel(best)
        return best

    def _choices(self) -> Iterator[Buffers]:
        """Yield buffers with the aliases that are safe, then without optional aliases."""
        merged = problem_of(self.schedule, without=unsafe_aliases(self.schedule, self.order))
        yield merged
        if merged.is_merged:
            yield problem_of(self.schedule, in_place=False)


def _placed(buffers: Buffers, conflicts: BufferConflicts, bound_bytes: int) -> Plan:
    problem = buffers.problem
    best: Plan | None = None
    for name, order_by in ORDERS.items():
        for tightest in (False, True):
            offsets = conflicts.place(
                problem.size_bytes, problem.alignment, order_by(problem), tightest
            )
            strategy = f"parallel:{name}{'+tightest' if tightest else ''}"
            plan = Plan(problem, offsets, strategy, bound_bytes, "feasible")
            if best is None or plan.peak_bytes < best.peak_bytes:
                best = plan
            if best.peak_bytes <= bound_bytes:
                break
    assert best is not None
    best = replace(best, status=status_of(best))
    verify(best)
    return best
