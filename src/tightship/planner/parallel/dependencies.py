"""Derives the order of steps that holds for every plan."""

from collections.abc import Iterator, Sequence

import numpy as np

from tightship._core import StepOrder, needed_edges
from tightship.planner.alias_group import alias_groups_of
from tightship.planner.parallel.touched import touched_groups
from tightship.planner.problem import Int64Array
from tightship.planner.schedule import AliasKind, Schedule

Edge = tuple[int, int]
"""A step, and a later step that must not begin before the first has ended."""


def dependencies(schedule: Schedule) -> list[Edge]:
    """Return edges from the writer of a value to its readers, and to steps that must overwrite it.

    A TIED alias writes over the bytes of its input, so all earlier steps that touch these bytes
    come before it.
    """
    return sorted({*_flow(schedule), *_before_ties(schedule)})


def step_order(schedule: Schedule, edges: Sequence[Edge]) -> StepOrder:
    """Make the partial order that edges define on a schedule's steps."""
    return StepOrder(len(schedule.steps), edge_columns(edges))


def fewest_edges(step_count: int, edges: Sequence[Edge]) -> list[Edge]:
    """Leave out the edges that follow from others."""
    nothing = np.zeros((2, 0), np.int64)
    kept = needed_edges(step_count, nothing, edge_columns(edges))
    return [edges[index] for index in kept.tolist()]


def edge_columns(edges: Sequence[Edge]) -> Int64Array:
    """Return the first and the second steps of edges as columns; shape (2, e)."""
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
        groups = alias_groups_of(schedule)
        touched = touched_groups(schedule, groups)
        for index, output in tied:
            yield from ((t, index) for t in touched[groups[output]] if t < index)
