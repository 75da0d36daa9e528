"""Plans memory so that independent steps may run in any order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightship._core import BufferConflicts, StepOrder
from tightship.errors import PlanError
from tightship.planner.alias_group import alias_groups_of
from tightship.planner.bound import lower_bound
from tightship.planner.liveness import problem_of
from tightship.planner.parallel.dependencies import Edge, dependencies, step_order
from tightship.planner.parallel.touched import buffer_order, touched_groups
from tightship.planner.placements import order as orders
from tightship.planner.plan import Plan, status_of
from tightship.planner.portfolio import OrderOf, place
from tightship.planner.problem import Int64Array, Problem
from tightship.planner.schedule import Alias, AliasKind, Schedule
from tightship.planner.schedule_plan import Buffers, SchedulePlan
from tightship.planner.stored_order import order_of
from tightship.planner.verify import verify
from tightship.planner.verify_parallel import verify_parallel


def path_colours(step_count: int, edges: Sequence[Edge], paths: int) -> Int64Array:
    """Colour steps: one colour for each of `paths` longest paths, and one for each other step.

    The longest path of uncoloured steps is coloured, `paths` times. A path may pass through
    coloured steps, which do not count towards its length.

    Args:
        step_count: Number of steps.
        edges: Pairs of a step and a later step.
        paths: Number of paths; each is a stream of work that may run beside the others.

    Returns:
        A colour for each step, from 0; shape (step_count,).

    Complexity: O(paths * (steps + edges)).
    Source: MXNet, "Optimizing Memory Consumption in Deep Learning": colouring for parallel
        execution.
    """
    incoming: list[list[int]] = [[] for _ in range(step_count)]
    for before, after in edges:
        incoming[after].append(before)
    colour = np.arange(paths, paths + step_count, dtype=np.int64)
    for path in range(paths):
        for step in _longest(incoming, colour >= paths):
            if colour[step] >= paths:
                colour[step] = path
    return colour


def _longest(incoming: Sequence[Sequence[int]], counts: np.ndarray[tuple[int], np.dtype[np.bool_]],
             ) -> list[int]:  # fmt: skip
    """Return the path with the most steps that count; of equal paths the one that ends first."""
    lengths: list[int] = []
    came_from: list[int] = []
    for step, before in enumerate(incoming):
        best = max(before, key=lambda other: lengths[other], default=-1)
        came_from.append(best)
        lengths.append(int(counts[step]) + (lengths[best] if best >= 0 else 0))
    path: list[int] = []
    step = lengths.index(max(lengths)) if lengths else -1
    while step >= 0:
        path.append(step)
        step = came_from[step]
    return path


def unsafe_aliases(schedule: Schedule, order: StepOrder) -> frozenset[Alias]:
    """Return IN_PLACE and PART aliases that are safe only in the order of the schedule.

    Some step touches the bytes of their input and need not have ended when these are overwritten
    or, for a part, when the whole exists.
    """
    groups = alias_groups_of(schedule)
    touched = touched_groups(schedule, groups)
    return frozenset(
        alias
        for index, step in enumerate(schedule.steps)
        for alias in step.aliases
        if alias.kind in (AliasKind.IN_PLACE, AliasKind.PART)
        and not all(t == index or order.before(t, index) for t in touched[groups[alias.input]])
    )


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


def plan_parallel(
    schedule: Schedule, paths: Paths | None = None, waits: Sequence[Edge] = ()
) -> SchedulePlan:
    """Find the smallest plan that adds no order to the steps beyond some waits.

    Two buffers share bytes only if every step that touches the one is an ancestor, through values,
    of every step that touches the other. Optional aliases are taken under the same condition. The
    plan's lower bound is that of steps that run one after another.

    Args:
        schedule: Values and steps.
        paths: Paths along which sharing is preferred or required; None, the default, prefers none.
        waits: Further edges that steps may be made to keep, which `added_edges` of the plan then
            names as far as it needs them; none by default.

    Raises:
        PlanError: As `problem_of`; or fewer than one path.
        InvalidPlanError: Verification found the placement wrong, which is a defect.

    Complexity: O(m * m) for m buffers, in time and in bits.
    """
    edges = sorted({*dependencies(schedule), *waits})
    order = step_order(schedule, edges)
    bound = lower_bound(problem_of(schedule).problem)
    planned = _Parallel(schedule, order, bound, tuple(waits))
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
    waits: tuple[Edge, ...]

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
        verify_parallel(best, self.waits)
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
