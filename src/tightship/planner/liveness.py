"""Derives buffers from a schedule: their lifetimes, and which values share one."""

from collections.abc import Collection

import numpy as np

from tightship.planner.alias_choice import NOTHING, Chosen, choose
from tightship.planner.alias_group import AliasGroup, alias_groups_of
from tightship.planner.problem import Problem
from tightship.planner.schedule import Alias, Schedule
from tightship.planner.schedule_plan import NO_BUFFER, Buffers
from tightship.public_calls import public_call


@public_call
def problem_of(
    schedule: Schedule, *, in_place: bool = True, without: Collection[Alias] = ()
) -> Buffers:
    """Make the problem of placing a schedule's values and scratch.

    A value lives from the step that writes it to the last step that reads it, that step included,
    because the inputs, outputs and scratch of a step are live together. A view extends the lifetime
    of the bytes that it shows.

    Args:
        schedule: Values and steps.
        in_place: Whether IN_PLACE and PART aliases may be taken, as `choose` does; VIEW and TIED
            aliases always are. True by default.
        without: IN_PLACE and PART aliases to leave out; none by default.

    Returns:
        The buffers, with the buffer of each value and of each step's scratch.

    Raises:
        PlanError: An external value is bound to one inside the arena, or a value is TIED to
            bytes that are read later or by another operand.

    Complexity: O(values + reads), and O(span) for each alias of different sizes.
    """
    groups = alias_groups_of(schedule)
    chosen = choose(schedule, groups, without) if in_place else NOTHING
    return buffers_of(schedule, groups, chosen)


def buffers_of(schedule: Schedule, groups: list[AliasGroup], chosen: Chosen) -> Buffers:
    """Make the buffers of alias groups that were merged along the aliases `chosen`."""
    written = sorted(value for step in schedule.steps for value in step.writes)
    placed = dict.fromkeys(groups[value] for value in written if not groups[value].external)
    index_of = {group: index for index, group in enumerate(placed)}
    of_value = [NO_BUFFER] * len(schedule.values)
    for value in written:
        of_value[value] = index_of.get(groups[value], NO_BUFFER)
    buffers = list(placed)
    of_scratch = [NO_BUFFER] * len(schedule.steps)
    for index, group in _scratch_groups(schedule):
        of_scratch[index] = len(buffers)
        buffers.append(group)
    return Buffers(
        _problem(buffers),
        tuple(of_value),
        tuple(of_scratch),
        chosen.in_place,
        chosen.parts,
        chosen.inside,
    )


def _scratch_groups(schedule: Schedule) -> list[tuple[int, AliasGroup]]:
    return [
        (index, AliasGroup(f"{step.name}.scratch", index, index + 1, step.scratch_bytes))
        for index, step in enumerate(schedule.steps)
        if step.scratch_bytes
    ]


def _problem(groups: list[AliasGroup]) -> Problem:
    return Problem(
        np.array([group.size_bytes for group in groups], np.int64),
        np.array([group.start_step for group in groups], np.int64),
        np.array([group.stop_step for group in groups], np.int64),
        np.array([group.alignment for group in groups], np.int64),
        tuple(group.name for group in groups),
    )
