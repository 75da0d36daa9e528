"""What must have ended before a step begins, whatever the plan."""

from collections.abc import Iterator, Sequence

import numpy as np

from tightship._core import StepOrder
from tightship.planner.cell import cells_of
from tightship.planner.parallel.touched import touched_cells
from tightship.planner.problem import Int64Array
from tightship.planner.schedule import AliasKind, Schedule

Edge = tuple[int, int]
"""A step, and a later one that must not begin before the first has ended."""


def dependencies(schedule: Schedule) -> list[Edge]:
    """Edges from the writer of a value to its readers, and to steps that must write over it.

    A TIED alias writes over the bytes of its input; whatever touches these before comes before it.
    """
    return sorted({*_flow(schedule), *_before_ties(schedule)})


def step_order(schedule: Schedule, edges: Sequence[Edge]) -> StepOrder:
    """The order that edges leave between a schedule's steps."""
    return StepOrder(len(schedule.steps), edge_columns(edges))


def edge_columns(edges: Sequence[Edge]) -> Int64Array:
    """Where edges start, and where they end; shape (2, e)."""
    return np.ascontiguousarray(np.array(edges, np.int64).reshape(-1, 2).T)


def _flow(schedule: Schedule) -> Iterator[Edge]:
    writer: dict[int, int] = {}
    for index, step in enumerate(schedule.steps):
        for value in step.reads:
            if value in writer:
                yield writer[value], index
        writer.update(dict.fromkeys(step.writes, index))


def _before_ties(schedule: Schedule) -> Iterator[Edge]:
    tied = [
        (index, alias.output)
        for index, step in enumerate(schedule.steps)
        for alias in step.aliases
        if alias.kind is AliasKind.TIED
    ]
    if tied:
        cells = cells_of(schedule)
        touched = touched_cells(schedule, cells)
        for index, output in tied:
            yield from ((t, index) for t in touched[cells[output]] if t < index)
