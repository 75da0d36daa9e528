"""The truth about small problems with constraints, by trying every base of everything."""

from collections.abc import Iterator

import numpy as np

from tightship.planner.constraints import FREE, Constraints
from tightship.planner.problem import Problem

STEPS = 16
BYTES = 32

Option = tuple[int, int, int, int]
"""Bank, cells as bits, cost, and the byte at which the highest member ends."""


def fits(
    made: Problem, capacities: list[int], cost: int | None = None, peak: int | None = None
) -> bool:
    """Whether any placement stays within the capacity of each bank, a cost and a sum of peaks."""
    options = sorted((_options(made, members, capacities) for members in _pieces(made)), key=len)

    def can_place(index: int, used: int, spent: int, peaks: list[int]) -> bool:
        if index == len(options):
            return True
        for bank, cells, charge, top in options[index]:
            if cells & used or (cost is not None and spent + charge > cost):
                continue
            grown = [*peaks[:bank], max(peaks[bank], top), *peaks[bank + 1 :]]
            if peak is not None and sum(grown) > peak:
                continue
            if can_place(index + 1, used | cells, spent + charge, grown):
                return True
        return False

    return can_place(0, 0, 0, [0] * len(capacities))


def smallest(limit: int, is_possible) -> int:
    """The smallest number from 0 to `limit` that is possible."""
    return next(number for number in range(limit + 1) if is_possible(number))


def _pieces(made: Problem) -> list[list[int]]:
    constraints = made.constraints or Constraints()
    group = [FREE] * made.count if constraints.group is None else constraints.group.tolist()
    alone = [[index] for index in range(made.count) if group[index] == FREE]
    named = sorted(set(group) - {FREE})
    return alone + [[i for i in range(made.count) if group[i] == name] for name in named]


def _options(made: Problem, members: list[int], capacities: list[int]) -> list[Option]:
    constraints = made.constraints or Constraints()
    taken = 0
    for place in constraints.forbidden:
        taken |= _cells(place.bank, range(place.start_byte, place.stop_byte),
                        range(place.start_step, place.stop_step))  # fmt: skip
    found: dict[tuple[int, int], Option] = {}
    for bank, capacity in enumerate(capacities):
        allowed = constraints.allowed_banks
        if allowed is not None and not allowed[members, bank].all():
            continue
        price = constraints.banks[bank].cost_per_byte if constraints.banks else 0
        charge = price * int(made.size_bytes[members].sum())
        for base in range(-BYTES, capacity + 1):
            places = list(_places(made, members, base))
            if any(not _may_lie(made, index, offset, capacity) for index, offset in places):
                continue
            cells = 0
            for index, offset in places:
                cells |= _cells_of(made, bank, index, offset)
            top = max(offset + int(made.size_bytes[index]) for index, offset in places)
            if not cells & taken:
                known = found.setdefault((bank, cells), (bank, cells, charge, top))
                found[bank, cells] = min(known, (bank, cells, charge, top))
    return list(found.values())


def _places(made: Problem, members: list[int], base: int) -> Iterator[tuple[int, int]]:
    constraints = made.constraints or Constraints()
    for index in members:
        grouped = constraints.group is not None and constraints.group[index] != FREE
        yield index, base + (int(constraints.group_offset_bytes[index]) if grouped else 0)


def _may_lie(made: Problem, index: int, offset: int, capacity: int) -> bool:
    pinned = made.constraints.pinned_offset_bytes if made.constraints else None
    return (
        offset >= 0
        and offset % int(made.alignment[index]) == 0
        and offset + int(made.size_bytes[index]) <= capacity
        and (pinned is None or pinned[index] in (FREE, offset))
    )


def _cells_of(made: Problem, bank: int, index: int, offset: int) -> int:
    constraints = made.constraints or Constraints()
    gaps = np.zeros((0, 3)) if constraints.gaps is None else constraints.gaps
    kept = constraints.gap_window_bytes
    cells = 0
    for step in range(int(made.start_step[index]), int(made.stop_step[index])):
        bottom, top = 0, int(made.size_bytes[index])
        for row, (buffer, start, stop) in enumerate(gaps.tolist()):
            if buffer == index and start <= step < stop:
                bottom, top = (0, 0) if kept is None else kept[row].tolist()
        cells |= _cells(bank, range(offset + bottom, offset + top), range(step, step + 1))
    return cells


def _cells(bank: int, spots: range, steps: range) -> int:
    bits = 0
    for byte in range(spots.start, min(spots.stop, BYTES)):
        for step in range(steps.start, min(steps.stop, STEPS)):
            bits |= 1 << ((bank * BYTES + byte) * STEPS + step)
    return bits
