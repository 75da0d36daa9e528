"""Plans the memory of repeated programs: records an iteration, and plans the later ones."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tightship.planner import Plan, Problem, place
from tightship.public_calls import public_call
from tightship.resource.virtual import PlannedResource

__all__ = ["iteration", "plan_ahead"]


@contextmanager
def iteration(resource: PlannedResource) -> Iterator[None]:
    """Run one iteration of a program that repeats the same allocations.

    The first iteration is recorded and planned, and so is one that differed from the plan. The plan
    stays unchanged if a block of the plan is still live at the end of the iteration.

    Raises:
        OutOfMemoryError: The upstream resource cannot provide the memory that the plan needs.
    """
    # Zero capacity means that there is no plan yet; a surprise is a request that the plan lacks.
    surprises = resource.surprise_count
    is_first = resource.capacity_bytes == 0
    resource.restart()
    yield
    if (is_first or resource.surprise_count > surprises) and not resource.planned_count:
        plan_ahead(resource)


@public_call
def plan_ahead(resource: PlannedResource) -> Plan:
    """Plan the allocations recorded since `restart`, and use the plan after the next `restart`.

    Blocks that are still live, and blocks that were freed out of order, stay with the upstream
    resource.

    Returns:
        The plan of the other blocks.

    Raises:
        OutOfMemoryError: The upstream resource cannot provide the memory that the plan needs.
        InputError: A block of the previous plan is live.
    """
    rows = resource.recorded()
    placed = [index for index, row in enumerate(rows) if row[3] is not None]
    columns = [[rows[index][field] for index in placed] for field in range(4)]
    sizes, alignments, starts, stops = (np.array(column, np.int64) for column in columns)
    plan = place(Problem(sizes, starts, stops, alignments))
    offsets = dict(zip(placed, plan.offset_bytes.tolist(), strict=True))
    resource.set_plan(
        [(size, alignment, offsets.get(index)) for index, (size, alignment, *_) in enumerate(rows)],
        plan.peak_bytes,
        max(alignments.tolist(), default=1),
    )
    return plan
