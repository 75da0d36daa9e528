"""Finds aliases that are safe in any order of steps."""

from tightship._core import StepOrder
from tightship.planner.alias_group import alias_groups_of
from tightship.planner.parallel.touched import touched_groups
from tightship.planner.schedule import Alias, AliasKind, Schedule


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
