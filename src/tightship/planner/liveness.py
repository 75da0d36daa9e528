"""From a schedule to buffers: who lives when, and who may live in whose bytes."""

from dataclasses import dataclass

import numpy as np

from tightship.errors import PlanError
from tightship.planner.problem import Problem
from tightship.planner.schedule import Alias, AliasKind, Schedule, Step

SCRATCH_ALIGNMENT = 64
"""Alignment of a step's scratch, in bytes."""

EXTERNAL = -1
"""In place of a buffer's index: the value lives outside the arena, or nowhere."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """The buffers of a schedule.

    `of_value` and `of_scratch` hold, for each value and each step, the index of its buffer in
    `problem`, or -1 for none. `in_place` lists the optional aliases that were taken.
    """

    problem: Problem
    of_value: tuple[int, ...]
    of_scratch: tuple[int, ...]
    in_place: tuple[Alias, ...]


def problem_of(schedule: Schedule, *, in_place: bool = True) -> Buffers:
    """The problem of placing a schedule's values and scratch.

    A value lives from the step that writes it to the last that reads it, that step included:
    what a step reads and writes is live together. A view lengthens the life of the bytes it
    shows. An IN_PLACE alias is taken only if no value in the input's buffer is read later or by
    another operand of the step, and if the load of no step rises above the largest load there
    was; a buffer is as large as its largest tenant.

    Args:
        schedule: Values and steps.
        in_place: Whether IN_PLACE aliases may be taken; VIEW and TIED ones always are.

    Raises:
        PlanError: An external value is bound to one inside the arena, or a value is TIED to
            bytes that are read later.
    """
    return _Walk(schedule).buffers(in_place=in_place)


@dataclass(slots=True)
class _Family:
    """Values that show the same bytes: one that is written, and the views of it."""

    external: bool
    start_step: int
    stop_step: int
    size_bytes: int
    alignment: int


@dataclass(slots=True)
class _Cell:
    """A buffer in the making."""

    name: str
    start_step: int
    stop_step: int
    size_bytes: int
    alignment: int


class _Walk:
    """One pass over the steps; cells are given to families in the order of writing."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.family_of = list(range(len(schedule.values)))
        self.families = [
            _Family(value.external, 0, 0, value.size_bytes, value.alignment)
            for value in schedule.values
        ]
        self.members: dict[int, set[int]] = {}
        self._find_families()
        self.cells: list[_Cell] = []
        self.cell_of: dict[int, int] = {}
        self.taken: list[Alias] = []
        self.load = np.zeros(len(schedule.steps) + 1, np.int64)

    def _find_families(self) -> None:
        values = self.schedule.values
        for index, step in enumerate(self.schedule.steps):
            views = {a.output: a.input for a in step.aliases if a.kind is AliasKind.VIEW}
            for value in step.writes:
                if value in views:
                    self._join(value, self.family_of[views[value]], step)
                else:
                    self.families[value].start_step = index
                family = self.families[self.family_of[value]]
                family.stop_step = max(family.stop_step, index + 1)
            for value in step.reads:
                family = self.families[self.family_of[value]]
                family.stop_step = max(family.stop_step, index + 1)
        for value in self.schedule.outputs:
            self.families[self.family_of[value]].stop_step = len(self.schedule.steps) + 1
        for value in range(len(values)):
            self.members.setdefault(self.family_of[value], set()).add(value)

    def _join(self, value: int, root: int, step: Step) -> None:
        family = self.families[root]
        if self.schedule.values[value].external and not family.external:
            self._refuse_external(value, root, step)
        self.family_of[value] = root
        family.size_bytes = max(family.size_bytes, self.schedule.values[value].size_bytes)
        family.alignment = max(family.alignment, self.schedule.values[value].alignment)

    def buffers(self, *, in_place: bool) -> Buffers:
        """Cells for all steps, as a problem."""
        self._load_without_in_place()
        scratch: list[int] = []
        for index, step in enumerate(self.schedule.steps):
            for value in step.writes:
                if self.family_of[value] == value and not self.families[value].external:
                    self._settle(value, index, step, in_place=in_place)
                elif self.family_of[value] == value:
                    self._check_external(value, step)
            scratch.append(self._book_scratch(index, step))
        return self._result(scratch)
