"""Aliases that hold whatever the order in which steps run."""

from tightship._core import StepOrder
from tightship.planner.cell import cells_of
from tightship.planner.parallel.touched import touched_cells
from tightship.planner.schedule import Alias, AliasKind, Schedule


def unsafe_aliases(schedule: Schedule, order: StepOrder) -> frozenset[Alias]:
    """IN_PLACE and PART aliases that hold in the order of the schedule only.

    The bytes of their input are touched by a step that need not have ended when they are written
    over, or, of a part, when the whole is there.
    """
    cells = cells_of(schedule)
    touched = touched_cells(schedule, cells)
    return frozenset(
        alias
        for index, step in enumerate(schedule.steps)
        for alias in step.aliases
        if alias.kind in (AliasKind.IN_PLACE, AliasKind.PART)
        and not all(t == index or order.before(t, index) for t in touched[cells[alias.input]])
    )
