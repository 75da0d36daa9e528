"""A plan beneath any program: what it asked for once, it is given at planned offsets again."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tightship.planner import Plan, Problem, solve
from tightship.resource.virtual import PlannedResource


@contextmanager
def iteration(resource: PlannedResource) -> Iterator[None]:
    """One iteration of a program that does the same again and again.

    The first one is recorded and planned; so is one that met a surprise. While any block that a
    plan gave is live at the end, the plan stays as it is.

    Raises:
        OutOfMemoryError: The upstream has not as much as the plan takes.
    """
    surprises = resource.surprise_count
    is_first = resource.capacity_bytes == 0
    resource.restart()
    yield
    if (is_first or resource.surprise_count > surprises) and not resource.planned_count:
        plan_ahead(resource)


def plan_ahead(resource: PlannedResource) -> Plan:
    """Plan what was asked for since `restart`, and expect it after the next one.

    A block that is still live, and one that went back out of order, is left to the upstream.

    Raises:
        OutOfMemoryError: The upstream has not as much as the plan takes.
        InputError: A block of the plan before is live.
    """
    rows = resource.recorded()
    placed = [index for index, row in enumerate(rows) if row[3] is not None]
    columns = [[rows[index][field] for index in placed] for field in range(4)]
    sizes, alignments, starts, stops = (np.array(column, np.int64) for column in columns)
    plan = solve(Problem(sizes, starts, stops, alignments))
    offsets = dict(zip(placed, plan.offset_bytes.tolist(), strict=True))
    resource.set_plan(
        [(size, alignment, offsets.get(index)) for index, (size, alignment, *_) in enumerate(rows)],
        plan.peak_bytes,
        max(alignments.tolist(), default=1),
    )
    return plan
