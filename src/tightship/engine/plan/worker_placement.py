"""Places a lowered program for several workers."""

from functools import partial

from tightship.engine.plan.placement import Placement, place
from tightship.engine.plan.step_operations import step_operations
from tightship.engine.plan.step_waits import waits_of
from tightship.engine.program.program import Lowered
from tightship.engine.program.schedule import schedule_of
from tightship.planner.parallel.worker_plan import plan_for_workers


def place_for_workers(
    lowered: Lowered,
    workers: int,
    added_bytes: int | None = None,
    arena_bytes_max: int | None = None,
) -> Placement:
    """Choose the plan with the shortest simulated time, as `plan_for_workers` does, and place it.

    Args:
        lowered: The program.
        workers: Steps that may run at once.
        added_bytes: Most by which the arena may exceed that for one worker; None for no bound.
        arena_bytes_max: Most that the arena may take, if that for one worker takes no more.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can honour.
    """
    found = plan_for_workers(
        schedule_of(lowered),
        workers,
        [step_operations(step) for step in lowered.steps],
        waits_of=partial(waits_of, lowered),
        added_bytes=added_bytes,
        arena_bytes_max=arena_bytes_max,
    )
    return place(lowered._replace(workers=workers), found.plan, found.concurrency)
