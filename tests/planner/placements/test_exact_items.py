import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planner.constrained.oracle import fits
from tests.planner.constrained.problems import ALL, column, constrained_problems, is_valid
from tests.planner.planted import cut_cells
from tests.planner.problems import problem
from tightship._core import StopFlag
from tightship.planner.constraints import FREE, Bank, Constraints, ForbiddenRange
from tightship.planner.part import part_of
from tightship.planner.placements.exact_items import ItemSearch, Within
from tightship.planner.verify import verify_offsets

EFFORT = 1_000_000_000
PARTS = [*ALL.split()[:4], "pins", "banks capacities", "banks capacities pins", ALL, ALL + " pins"]


def limits_of(made, peak, cost):
    """The capacity of each bank, and what else a placement is to stay within."""
    banks = made.constraints.banks
    if not banks:
        return [peak], Within(peak_bytes=peak), (None, None)
    capacities = [20 if bank.capacity_bytes is None else bank.capacity_bytes for bank in banks]
    return capacities, Within(cost, peak), (cost, peak)


@pytest.mark.parametrize("parts", PARTS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_fits_and_what_does_not_is_as_brute_force_finds(parts, data):
    made = data.draw(constrained_problems(parts=f"gaps {parts}" if parts == "windows" else parts))
    peak, cost = data.draw(st.integers(1, 18)), data.draw(st.integers(0, 30))
    capacities, within, (dearest, highest) = limits_of(made, peak, cost)
    found = ItemSearch(made).fit(within, effort=EFFORT)
    assert found.verdict == ("fits" if fits(made, capacities, dearest, highest) else "infeasible")
    if found.verdict == "fits":
        bank = found.bank if made.constraints.banks else None
        assert is_valid(made, found.offset_bytes, bank)
        verify_offsets(made, found.offset_bytes, bank)
        ends = found.offset_bytes + made.size_bytes
        assert (ends <= np.array(capacities)[found.bank]).all()
    else:
        conflict = part_of(made, found.conflict)
        assert not fits(conflict, capacities, dearest, highest)


def planted_with_constraints(seed: int, capacity: int = 64):
    """Cells of a full rectangle: some pinned, some forbidden, some moved only together."""
    drawn = random.Random(seed)
    cells = cut_cells(drawn, 16, capacity)
    kind = [drawn.choice(["free", "free", "free", "pin", "forbid", "group"]) for _ in cells]
    kept = [index for index, name in enumerate(kind) if name != "forbid"]
    rows = [(cells[i][3] - cells[i][2], cells[i][0], cells[i][1], 1) for i in kept]
    bottom = column(*(cells[i][2] for i in kept))
    pinned = np.array([kind[i] == "pin" for i in kept])
    grouped = np.array([kind[i] == "group" for i in kept])
    constraints = Constraints(
        np.where(pinned, bottom, FREE),
        forbidden=tuple(
            ForbiddenRange(low, top, start, stop)
            for (start, stop, low, top), name in zip(cells, kind, strict=True)
            if name == "forbid"
        ),
        group=np.where(grouped, np.cumsum(grouped) // 3, FREE),
        group_offset_bytes=np.where(grouped, bottom, 0),
    )
    return rows, constraints


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_planted_problems_are_never_called_infeasible_and_nearly_all_are_solved(count):
    solved = 0
    for seed in range(count):
        rows, constraints = planted_with_constraints(seed)
        made = problem(*rows, constraints=constraints)
        found = ItemSearch(made).fit(Within(peak_bytes=64), effort=EFFORT)
        assert found.verdict != "infeasible"
        if found.verdict == "fits":
            verify_offsets(made, found.offset_bytes)
            assert (found.offset_bytes + made.size_bytes).max() <= 64
            solved += 1
    assert solved >= 0.98 * count


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_a_byte_more_than_a_full_rectangle_never_fits(count):
    for seed in range(count):
        rows, constraints = planted_with_constraints(seed)
        step = seed % 39
        more = Constraints(
            np.append(constraints.pinned_offset_bytes, FREE),
            forbidden=constraints.forbidden,
            group=np.append(constraints.group, FREE),
            group_offset_bytes=np.append(constraints.group_offset_bytes, 0),
        )
        made = problem(*rows, (1, step, step + 1, 1), constraints=more)
        found = ItemSearch(made).fit(Within(peak_bytes=64), effort=EFFORT)
        assert found.verdict == "infeasible"


def test_an_empty_buffer_counts_in_the_peak_where_it_is_pinned():
    constraints = Constraints(
        column(2), banks=(Bank("b0", 0), Bank("b1", 2)), allowed_banks=np.ones((1, 2), bool)
    )
    search = ItemSearch(problem((0, 0, 1, 2), constraints=constraints))
    verdicts = [search.fit(Within(peak_bytes=peak), effort=EFFORT).verdict for peak in (0, 1, 2)]
    assert verdicts == ["infeasible", "infeasible", "fits"]


def test_two_that_carry_each_other_are_found():
    # Each has a part above the other's: neither rests on what is placed before it.
    one = ((2, 0, 1, 1), (2, 2, 3, 1))
    group = column(0, 0, 1, 1, FREE)
    offset = column(0, 5, 3, 0, 0)
    made = problem(*one, *one, (3, 0, 3, 1), constraints=Constraints(
        group=group, group_offset_bytes=offset))  # fmt: skip
    for peak in range(4, 12):
        verdict = ItemSearch(made).fit(Within(peak_bytes=peak), effort=EFFORT).verdict
        assert verdict == ("fits" if fits(made, [peak]) else "infeasible")


def test_the_same_comes_out_on_any_number_of_threads():
    for seed in range(20):
        rows, constraints = planted_with_constraints(seed)
        search = ItemSearch(problem(*rows, constraints=constraints))
        answers = [
            search.fit(Within(peak_bytes=peak), effort=2_000_000, threads=threads)
            for peak in (63, 64)
            for threads in (1, 2, 7)
        ]
        for first, *others in (answers[:3], answers[3:]):
            for other in others:
                assert (other.verdict, other.effort) == (first.verdict, first.effort)
                assert other.offset_bytes.tobytes() == first.offset_bytes.tobytes()
                assert other.conflict.tobytes() == first.conflict.tobytes()


def test_effort_and_a_flag_end_the_search():
    rows, constraints = planted_with_constraints(3)
    search = ItemSearch(problem(*rows, constraints=constraints))
    flag = StopFlag()
    flag.set()
    assert search.fit(Within(peak_bytes=64), effort=0).verdict == "open"
    assert search.fit(Within(peak_bytes=64), effort=EFFORT, stop=flag).verdict == "open"


def test_what_leaves_int64_stays_open():
    banks = (Bank("a"), Bank("b"))
    made = problem((2**61, 0, 1, 1), (2**60, 0, 1, 2), constraints=Constraints(banks=banks))
    assert ItemSearch(made).fit(Within(), effort=EFFORT).verdict == "open"
    dear = Constraints(banks=(Bank("a", 16, 2**60),))
    made = problem((8, 0, 1, 1), (6, 0, 1, 1), constraints=dear)
    assert ItemSearch(made).fit(Within(), effort=EFFORT).verdict == "open"


def test_offsets_are_multiples_of_what_all_numbers_share():
    pinned = Constraints(column(48, FREE), forbidden=(ForbiddenRange(24, 32),))
    search = ItemSearch(problem((16, 0, 2, 8), (24, 0, 2, 1), constraints=pinned))
    assert search.unit_bytes == 8
    assert search.fit(Within(peak_bytes=64), effort=EFFORT).offset_bytes.tolist() == [48, 0]
