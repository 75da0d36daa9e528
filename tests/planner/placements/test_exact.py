import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planner.oracles import smallest_peak
from tests.planner.planted import planted
from tests.planner.problems import problem, problems
from tightship._core import StopFlag
from tightship.planner.placements.exact import FREE, fit
from tightship.planner.placements.in_one_order import first_fit
from tightship.planner.verify import verify_offsets

EFFORT = 50_000_000


def peak_of(placed, found) -> int:
    verify_offsets(placed, found.offset_bytes)
    return int((found.offset_bytes + placed.size_bytes).max(initial=0))


def part(whole, buffers):
    columns = (whole.size_bytes, whole.start_step, whole.stop_step, whole.alignment)
    return type(whole)(*(column[buffers] for column in columns))


@settings(max_examples=200)
@given(problems(count_max=7))
def test_what_fits_and_what_does_not_is_as_brute_force_finds(drawn):
    smallest = smallest_peak(drawn)
    assert peak_of(drawn, fit(drawn, smallest, effort=EFFORT)) == smallest
    if smallest:
        found = fit(drawn, smallest - 1, effort=EFFORT)
        assert found.verdict == "infeasible"
        assert found.bound_bytes == smallest
        assert smallest_peak(part(drawn, found.conflict)) == smallest


@settings(max_examples=200)
@given(problems(count_max=7), st.data())
def test_pinned_buffers_stay_and_the_rest_fits_if_brute_force_finds_room(drawn, data):
    order = data.draw(st.permutations(range(drawn.count)))
    placed = first_fit(drawn, np.array(order, np.int64))
    raised = placed + 16 * data.draw(st.integers(0, 3))  # so that bytes below are left free
    pinned = data.draw(st.sets(st.sampled_from(order))) if order else set()
    pinned = {index for index in pinned if drawn.size_bytes[index]}
    pins = np.array([raised[i] if i in pinned else FREE for i in range(drawn.count)], np.int64)
    smallest = smallest_peak(drawn, {index: int(raised[index]) for index in pinned})
    found = fit(drawn, smallest, effort=EFFORT, pins=pins)
    assert peak_of(drawn, found) <= smallest
    assert found.offset_bytes[list(pinned)].tolist() == raised[list(pinned)].tolist()
    reached = int((raised + drawn.size_bytes)[list(pinned)].max(initial=0))
    if smallest > reached:
        assert fit(drawn, smallest - 1, effort=EFFORT, pins=pins).verdict == "infeasible"


@settings(max_examples=100)
@given(problems(count_max=14, alignments=(1,)), st.integers(1, 2**40), st.randoms())
def test_scaling_relabelling_and_mirroring_change_no_verdict(drawn, factor, chance):
    order = list(range(drawn.count))
    chance.shuffle(order)
    last = int(drawn.stop_step.max(initial=0))
    changed = replace(
        drawn,
        size_bytes=factor * drawn.size_bytes[order],
        start_step=last - drawn.stop_step[order],
        stop_step=last - drawn.start_step[order],
    )
    load = int(drawn.live_bytes(last).max(initial=0))
    for capacity in {load, max(0, load - 1), load + 3}:
        one = fit(drawn, capacity, effort=EFFORT)
        other = fit(changed, factor * capacity, effort=EFFORT)
        assert one.verdict == other.verdict != "open"


def _planted_cases(count: int):
    for seed in range(count):
        drawn = random.Random(seed)
        yield planted(
            seed, drawn.randrange(5, 40), 2 ** drawn.randrange(3, 12), shaved=seed % 3 / 9
        )


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_planted_problems_are_never_called_infeasible_and_nearly_all_are_solved(count):
    solved = 0
    for made in _planted_cases(count):
        found = fit(made, made.capacity_bytes, effort=EFFORT)
        assert found.verdict != "infeasible"
        if found.verdict == "fits":
            assert peak_of(made, found) <= made.capacity_bytes
            solved += 1
    assert solved >= 0.98 * count


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_infeasible_problems_are_never_called_feasible(count):
    for seed in range(count):
        made = planted(seed, 12, 64)
        extra = 1 + seed % 3
        step = seed % 39
        grown = problem(
            *zip(made.size_bytes, made.start_step, made.stop_step, made.alignment, strict=True),
            (extra, step, step + 1, 1),
        )
        found = fit(grown, 64 + extra - 1, effort=EFFORT)
        assert found.verdict == "infeasible"
        assert grown.count - 1 in found.conflict
        assert fit(part(grown, found.conflict), 64 + extra - 1, effort=EFFORT).verdict == (
            "infeasible"
        )


@pytest.mark.parametrize("seed", range(4))
def test_any_number_of_threads_gives_the_same_answer(seed):
    made = planted(seed, 60, 1000, shaved=0.05)
    capacities = (made.capacity_bytes, made.capacity_bytes - 1)
    for capacity in capacities:
        answers = [fit(made, capacity, effort=EFFORT, threads=threads) for threads in (1, 2, 5)]
        assert len({(found.verdict, found.effort, found.bound_bytes) for found in answers}) == 1
        assert len({found.offset_bytes.tobytes() for found in answers}) == 1
        assert len({found.conflict.tobytes() for found in answers}) == 1


def test_without_effort_a_hard_question_stays_open():
    made = planted(1, 60, 1000)
    found = fit(made, made.capacity_bytes, effort=0)
    assert (found.verdict, found.offset_bytes.size, found.conflict.size) == ("open", 0, 0)


def test_a_set_stop_flag_leaves_the_question_open():
    flag = StopFlag()
    flag.set()
    made = planted(2, 200, 10_000)
    assert fit(made, made.capacity_bytes, effort=10 * EFFORT, stop=flag).verdict == "open"


def test_empty_buffers_lie_on_the_floor_and_no_buffers_fit_nothing():
    made = problem((0, 0, 5, 1), (8, 1, 2, 1), (0, 1, 9, 16))
    assert fit(made, 8, effort=EFFORT).offset_bytes.tolist() == [0, 0, 0]
    assert fit(problem(), 0, effort=EFFORT).verdict == "fits"


@pytest.mark.parametrize("unit", [1, 2**20, 2**60 - 1])
def test_sizes_near_the_limit_do_not_overflow(unit):
    made = problem((unit, 0, 2, 1), (2 * unit - 1, 1, 3, 1), (unit, 2, 4, 1))
    assert fit(made, 3 * unit - 1, effort=EFFORT).verdict == "fits"
    assert fit(made, 3 * unit - 2, effort=EFFORT).verdict == "infeasible"


def test_buffers_that_never_meet_share_the_floor():
    made = problem((5, 0, 1, 1), (7, 1, 2, 1), (6, 2, 3, 1))
    assert fit(made, 7, effort=EFFORT).offset_bytes.tolist() == [0, 0, 0]
    found = fit(made, 6, effort=EFFORT)
    assert (found.verdict, found.conflict.tolist(), found.bound_bytes) == ("infeasible", [1], 7)


def test_offsets_are_multiples_of_alignments_that_sizes_do_not_divide():
    made = problem((24, 0, 2, 16), (40, 0, 2, 1), (8, 1, 2, 64))
    found = fit(made, 72, effort=EFFORT)
    assert peak_of(made, found) == 72
    assert np.all(found.offset_bytes % made.alignment == 0)
