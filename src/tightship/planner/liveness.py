"""From a schedule to buffers: who lives when, and who may live in whose bytes."""

from dataclasses import dataclass

import numpy as np

from tightship.planner.cell import Cell, cells_of, merge
from tightship.planner.problem import Int64Array, Problem
from tightship.planner.schedule import Alias, AliasKind, Schedule

SCRATCH_ALIGNMENT = 64
"""Alignment of a step's scratch, in bytes."""

NO_BUFFER = -1
"""In place of a buffer's index: outside the arena, or no bytes at all."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """The buffers of a schedule.

    `of_value` and `of_scratch` hold, for each value and each step, the index of its buffer in
    `problem`, or -1 where there is none: an external value, a view of one, a value that no step
    writes, a step without scratch. `in_place` lists the optional aliases that were taken.
    """

    problem: Problem
    of_value: tuple[int, ...]
    of_scratch: tuple[int, ...]
    in_place: tuple[Alias, ...]


def problem_of(schedule: Schedule, *, in_place: bool = True) -> Buffers:
    """The problem of placing a schedule's values and scratch.

    A value lives from the step that writes it to the last that reads it, that step included:
    what a step reads, writes and uses as scratch is live together. A view lengthens the life of
    the bytes it shows.

    Args:
        schedule: Values and steps.
        in_place: Whether IN_PLACE aliases may be taken; VIEW and TIED ones always are. One is
            taken only if nobody reads the input's bytes later, no other operand of the step lies
            in them, and the largest load over the steps does not rise.

    Raises:
        PlanError: An external value is bound to one inside the arena, or a value is TIED to
            bytes that are read later or by another operand.

    Complexity: O(values + reads), and O(span) for each alias of different sizes.
    """
    cells = cells_of(schedule)
    taken = _take_in_place(schedule, cells) if in_place else ()
    written = sorted(value for step in schedule.steps for value in step.writes)
    placed = dict.fromkeys(cells[value] for value in written if not cells[value].external)
    index_of = {cell: index for index, cell in enumerate(placed)}
    of_value = [NO_BUFFER] * len(schedule.values)
    for value in written:
        of_value[value] = index_of.get(cells[value], NO_BUFFER)
    buffers = list(placed)
    of_scratch = [NO_BUFFER] * len(schedule.steps)
    for index, cell in _scratch_cells(schedule):
        of_scratch[index] = len(buffers)
        buffers.append(cell)
    return Buffers(_problem(buffers), tuple(of_value), tuple(of_scratch), taken)


def _scratch_cells(schedule: Schedule) -> list[tuple[int, Cell]]:
    return [
        (index, Cell(f"{step.name}.scratch", index, index + 1, step.scratch_bytes))
        for index, step in enumerate(schedule.steps)
        if step.scratch_bytes
    ]


def _take_in_place(schedule: Schedule, cells: list[Cell]) -> tuple[Alias, ...]:
    """Merge cells along the IN_PLACE aliases that hold; return these."""
    load = _load_bytes(schedule, cells)
    limit = int(load.max(initial=0))
    taken: list[Alias] = []
    for index, step in enumerate(schedule.steps):
        done: set[int] = set()
        for alias in sorted(step.aliases, key=lambda alias: _growth(cells, alias)):
            if (
                alias.kind is AliasKind.IN_PLACE
                and alias.output not in done
                and _dies_here(schedule, cells, index, alias)
                and _keeps_load(load, limit, cells[alias.input], cells[alias.output])
            ):
                merge(cells, cells[alias.input], cells[alias.output])
                done.add(alias.output)
                taken.append(alias)
    return tuple(taken)


def _growth(cells: list[Cell], alias: Alias) -> int:
    return abs(cells[alias.output].size_bytes - cells[alias.input].size_bytes)


def _dies_here(schedule: Schedule, cells: list[Cell], index: int, alias: Alias) -> bool:
    """Whether step `index` is the only and last user of the bytes of an alias' input."""
    host, step = cells[alias.input], schedule.steps[index]
    return (
        not host.external
        and not cells[alias.output].external
        and not host.is_kept
        and host.stop_step == index + 1
        and all(cells[value] is not host for value in step.writes)
        and all(value == alias.input or cells[value] is not host for value in step.reads)
    )


def _keeps_load(load: Int64Array, limit: int, host: Cell, cell: Cell) -> bool:
    """Merge two cells in the load if no step then needs more than `limit`; say whether it did."""
    shared = min(host.size_bytes, cell.size_bytes)
    before = slice(host.start_step, cell.start_step)
    after = slice(cell.start_step + 1, cell.stop_step)
    growth = max(0, cell.size_bytes - host.size_bytes)
    excess = max(0, host.size_bytes - cell.size_bytes)
    if growth and int(load[before].max(initial=0)) + growth > limit:
        return False
    if excess and int(load[after].max(initial=0)) + excess > limit:
        return False
    load[before] += growth
    load[cell.start_step] -= shared
    load[after] += excess
    return True


def _load_bytes(schedule: Schedule, cells: list[Cell]) -> Int64Array:
    internal = [cell for cell in dict.fromkeys(cells) if not cell.external]
    internal += [cell for _, cell in _scratch_cells(schedule)]
    return _problem(internal).load_bytes(len(schedule.steps))


def _problem(cells: list[Cell]) -> Problem:
    return Problem(
        np.array([cell.size_bytes for cell in cells], np.int64),
        np.array([cell.start_step for cell in cells], np.int64),
        np.array([cell.stop_step for cell in cells], np.int64),
        np.array([cell.alignment for cell in cells], np.int64),
        tuple(cell.name for cell in cells),
    )
