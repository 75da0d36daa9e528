"""The same graph as an imperative framework runs it: memory as values come and go.

Static planning simulates this once; here it is simulated as it is, allocator and all.
"""

from collections import Counter
from dataclasses import dataclass

from tightship.planner.cell import Cell, cells_of
from tightship.planner.schedule import Schedule
from tightship.planner.scheme.caching_allocator import CachingAllocator, Policy

DEFAULT_POLICY = Policy()


@dataclass(frozen=True, slots=True)
class Imperative:
    """What a run took.

    Attributes:
        peak_live_bytes: Most bytes that values and scratch held at once, rounded by the
            allocator.
        reserved_bytes: What the allocator had obtained from the system in the end: what a
            process monitor shows.
        allocate_calls: Calls of the allocator, for values and scratch.
        deallocate_calls: Those of them that came back during the run.
        system_calls: Requests to the system among them.
    """

    peak_live_bytes: int
    reserved_bytes: int
    allocate_calls: int
    deallocate_calls: int
    system_calls: int


def run_imperatively(
    schedule: Schedule, *, hold_references: bool = False, policy: Policy = DEFAULT_POLICY
) -> Imperative:
    """Allocate as a framework would that runs one operation after another.

    An output is allocated when its step runs, and freed when its last reference dies: after the
    last step that reads it. Nothing is written in place but what is TIED; a VIEW shares the
    bytes of its base.

    Args:
        schedule: Values and steps.
        hold_references: Whether a list somewhere refers to every value, so that none dies.
        policy: How the allocator rounds and cuts.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can honour.
    """
    cells = cells_of(schedule)
    allocator = CachingAllocator(policy)
    references: Counter[Cell] = Counter({cell: 1 for cell in cells if cell.is_kept})
    for step in schedule.steps:
        references.update({cells[value] for value in (*step.reads, *step.writes)})
    block_of: dict[Cell, int] = {}
    for step in schedule.steps:
        touched = dict.fromkeys(cells[value] for value in (*step.writes, *step.reads))
        for cell in touched:
            if not cell.external and cell not in block_of:
                block_of[cell] = allocator.allocate(cell.size_bytes)
        if step.scratch_bytes:
            allocator.deallocate(allocator.allocate(step.scratch_bytes))
        for cell in touched:
            references[cell] -= 1
            if not cell.external and references[cell] == 0 and not hold_references:
                allocator.deallocate(block_of[cell])
    return Imperative(
        allocator.peak_live_bytes,
        allocator.reserved_bytes,
        allocator.allocate_calls,
        allocator.deallocate_calls,
        allocator.system_calls,
    )
