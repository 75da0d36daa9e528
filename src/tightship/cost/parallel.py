"""Computes the memory of a graph whose independent steps run at once."""

from dataclasses import asdict, dataclass

from tightship.cost.model_cost import ModelCost
from tightship.planner import place_schedule
from tightship.planner.parallel.added_edges import added_edges
from tightship.planner.parallel.dependencies import dependencies
from tightship.planner.parallel.longest_path import longest_paths
from tightship.planner.parallel.parallel_plan import Paths, plan_parallel
from tightship.planner.parallel.side_steps import with_side_steps_joined
from tightship.planner.schedule import Schedule
from tightship.quantity import format_bytes
from tightship.view.table import Column, table

PATHS = (2, 4, 8)
"""Numbers of paths for which the memory note's colouring is computed."""


@dataclass(frozen=True, slots=True)
class ParallelRow:
    """A plan, the number of edges that it adds, and the longest path with them, in steps."""

    plan: str
    arena_bytes: int
    added_edges: int
    longest_path: int


def parallel_rows(cost: ModelCost) -> tuple[ParallelRow, ...]:
    """Compare a serial plan, with the edges that make it safe, and plans that need no edges.

    In a training step, gradients of weights are joined to gradients of data, so that the memory of
    their inputs can be reused.
    """
    rows = _rows("inference", cost.graph.schedule)
    if cost.step is None:
        return rows
    return *rows, *_rows("training", with_side_steps_joined(cost.step))


def _rows(pass_name: str, schedule: Schedule) -> tuple[ParallelRow, ...]:
    edges = dependencies(schedule)
    serial = place_schedule(schedule)
    added = [(edge.before, edge.after) for edge in added_edges(serial)]

    def row(name: str, arena_bytes: int, added: list[tuple[int, int]]) -> ParallelRow:
        paths = longest_paths([1] * len(schedule.steps), [*edges, *added])
        return ParallelRow(f"{pass_name}, {name}", arena_bytes, len(added), int(paths.longest))

    free = plan_parallel(schedule).plan.peak_bytes
    coloured = [
        (count, plan_parallel(schedule, Paths(count, is_required=True)).plan.peak_bytes)
        for count in PATHS
    ]
    return (
        row("one after another", serial.plan.peak_bytes, added),
        row("as soon as they can", free, []),
        *(row(f"sharing along {count} paths", size, []) for count, size in coloured),
    )


def parallel_report(rows: tuple[ParallelRow, ...]) -> str:
    """Format the rows as a table."""
    columns = [
        Column("steps that run at once"),
        *(Column(title, number=True) for title in ("arena", "added edges", "longest path")),
    ]
    groups = [
        [row.plan, format_bytes(row.arena_bytes), f"{row.added_edges:,}", f"{row.longest_path:,}"]
        for row in rows
    ]
    return "\n" + "\n".join(table(columns, groups, indent=2)) + "\n"


def parallel_json(rows: tuple[ParallelRow, ...]) -> list[dict[str, object]]:
    """Return the rows as JSON values."""
    return [asdict(row) for row in rows]
