"""Finds the order that a plan requires beyond the order that values require."""

from collections.abc import Sequence
from dataclasses import dataclass

from tightship._core import needed_edges
from tightship.planner.parallel.dependencies import dependencies, edge_columns, step_order
from tightship.planner.parallel.longest_path import longest_paths
from tightship.planner.parallel.touched import buffer_order, overwriting_edges
from tightship.planner.schedule_plan import SchedulePlan


@dataclass(frozen=True, slots=True)
class AddedEdge:
    """A requirement that a step ends before another begins, because their values share bytes.

    Attributes:
        before: Index of the step that ends.
        after: Index of the step that begins.
        price: Increase of the longest path if only this edge is added, in the unit of the weights.
    """

    before: int
    after: int
    price: float


def added_edges(
    plan: SchedulePlan, weights: Sequence[float] | None = None
) -> tuple[AddedEdge, ...]:
    """Find the fewest edges that make a plan safe for steps that run as soon as they can.

    No returned edge follows from the others and from what steps read and write. Buffers are kept
    apart as a whole: a part of a concatenation keeps its bytes as long as the whole, and an empty
    value those of the values that are written in its place.

    Args:
        plan: A plan for steps that run one after another.
        weights: Time that each step takes, in any unit; 1 for each by default.

    Complexity: O(pairs of buffers that share bytes + (steps + edges) * chains).
    """
    schedule, problem = plan.schedule, plan.buffers.problem
    edges = dependencies(schedule)
    order = step_order(schedule, edges)
    across = buffer_order(schedule, plan.buffers, order).implied(
        problem.size_bytes, problem.alignment, plan.plan.offset_bytes
    )
    within = [edge for edge in overwriting_edges(schedule, plan.buffers) if not order.before(*edge)]
    implied = sorted({*across, *within})
    rows = edge_columns(edges), edge_columns(implied)
    kept = [implied[index] for index in needed_edges(len(schedule.steps), *rows).tolist()]
    paths = longest_paths([1] * len(schedule.steps) if weights is None else weights, edges)
    return tuple(
        [AddedEdge(before, after, paths.growth((before, after))) for before, after in sorted(kept)]
    )
