from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.planner.problems import problem, problems
from tightship.errors import InvalidPlanError
from tightship.planner.placements.in_one_order import best_fit
from tightship.planner.plan import Plan
from tightship.planner.portfolio import place
from tightship.planner.problem import Problem
from tightship.planner.verify import verify, verify_offsets


def offsets(*values):
    return np.array(values, np.int64)


def test_an_overlap_names_buffers_bytes_and_steps():
    made = problem((8192, 5, 9, 1), (4096, 7, 12, 1), names=("q", "softmax"))
    message = r"Buffers 0 `q` and 1 `softmax` overlap: bytes \[4096, 8192\) in steps \[7, 9\)\."
    with pytest.raises(InvalidPlanError, match=message):
        verify_offsets(made, offsets(0, 4096))
    with pytest.raises(InvalidPlanError, match=r"bytes \[100, 4196\) in steps \[7, 9\)"):
        verify_offsets(made, offsets(0, 100))


@pytest.mark.parametrize("values", [(7, 0), (0, 7)])
def test_an_overlap_of_one_byte_is_found(values):
    with pytest.raises(InvalidPlanError, match=r"bytes \[7, 8\) in steps \[1, 2\)"):
        verify_offsets(problem((8, 0, 3, 1), (8, 1, 2, 1)), offsets(*values))


def test_touching_buffers_do_not_overlap():
    verify_offsets(problem((8, 0, 2, 1), (8, 2, 4, 1), (8, 1, 3, 1)), offsets(0, 0, 8))


def test_an_empty_buffer_overlaps_nothing():
    verify_offsets(problem((8, 0, 2, 1), (0, 0, 2, 1)), offsets(0, 4))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((0, -16), "Buffer 1 has offset_bytes=-16"),
        ((0, 24), "offset_bytes=24; it must be a multiple of its alignment 16"),
        ((0,), r"offsets of shape \(1,\); there are 2 buffers"),
    ],
)
def test_an_impossible_offset_is_refused(values, words):
    with pytest.raises(InvalidPlanError, match=words):
        verify_offsets(problem((8, 0, 1, 16), (8, 0, 1, 16)), offsets(*values))


@given(problems(), st.data())
def test_the_verdict_is_that_of_comparing_all_pairs(drawn, data):
    values = data.draw(
        st.lists(st.integers(0, 12), min_size=drawn.count, max_size=drawn.count).map(
            lambda tops: np.array(tops, np.int64) * 16
        )
    )
    if pairs_overlap(drawn, values):
        with pytest.raises(InvalidPlanError, match="overlap"):
            verify_offsets(drawn, values)
    else:
        verify_offsets(drawn, values)


def pairs_overlap(drawn, values) -> bool:
    size, start, stop, _ = drawn.columns()
    return any(
        size[i]
        and size[j]
        and start[i] < stop[j]
        and start[j] < stop[i]
        and values[i] < values[j] + size[j]
        and values[j] < values[i] + size[i]
        for i in range(drawn.count)
        for j in range(i)
    )


@given(problems(), st.data())
def test_a_buffer_moved_into_another_is_found(drawn, data):
    size, start, stop, _ = drawn.columns()
    pairs = [
        (i, j)
        for i in range(drawn.count)
        for j in range(drawn.count)
        if i != j and size[i] and size[j] and start[i] < stop[j] and start[j] < stop[i]
    ]
    assume(pairs)
    moved, onto = data.draw(st.sampled_from(pairs))
    values = place(drawn).offset_bytes.copy()
    values[moved] = values[onto] // drawn.alignment[moved] * drawn.alignment[moved]
    assume(values[moved] + size[moved] > values[onto])
    with pytest.raises(InvalidPlanError, match="overlap"):
        verify_offsets(drawn, values)


@pytest.mark.parametrize("count", [70, 700, 5000])
def test_one_moved_among_many_is_found_and_what_is_right_passes(count):
    # Most are dead at any time, and the sweep keeps those that live in a set of several levels.
    rng = np.random.default_rng(count)
    start = rng.integers(0, count // 5, count)
    columns = (rng.integers(1, 99, count), start, start + rng.integers(1, 9, count))
    made = Problem(*columns, np.ones(count, np.int64))
    right = best_fit(made)
    verify_offsets(made, right)
    for moved in rng.integers(0, count, 60):
        meets = (made.start_step < made.stop_step[moved]) & (made.stop_step > start[moved])
        meets[moved] = False
        for onto in np.flatnonzero(meets)[:1]:
            wrong = right.copy()
            wrong[moved] = right[onto]
            with pytest.raises(InvalidPlanError, match="overlap"):
                verify_offsets(made, wrong)
        above = right.copy()
        above[moved] = (right + made.size_bytes).max()
        verify_offsets(made, above)


def test_a_lengthened_lifetime_is_found():
    made = problem((8, 0, 2, 1), (8, 2, 4, 1))
    verify_offsets(made, offsets(0, 0))
    longer = replace(made, stop_step=offsets(3, 4))
    with pytest.raises(InvalidPlanError, match=r"in steps \[2, 3\)"):
        verify_offsets(longer, offsets(0, 0))


@pytest.mark.parametrize(
    ("bound", "status", "capacity", "words"),
    [
        (9, "feasible", None, "peak_bytes=8 below lower_bound_bytes=9"),
        (7, "optimal", None, "optimal with peak_bytes=8 and lower_bound_bytes=7"),
        (8, "optimal", 7, "Buffer 0 `b` ends at byte 8; the capacity is 7 bytes"),
        (7, "feasible", 7, "Buffer 0 `b` ends at byte 8; the capacity is 7 bytes"),
        (8, "budget", None, "called budget, but its 8 bytes fit the capacity None"),
        (8, "infeasible", 8, "called infeasible, but its 8 bytes fit the capacity 8"),
        (7, "infeasible", 7, "lower_bound_bytes=7 is within the capacity of 7 bytes"),
    ],
)
def test_a_false_claim_is_refused(bound, status, capacity, words):
    made = problem((8, 0, 1, 1), names=("b",), capacity_bytes=capacity)
    with pytest.raises(InvalidPlanError, match=words):
        verify(Plan(made, offsets(0), "by hand", bound, status))


@pytest.mark.parametrize(
    ("bound", "status", "capacity"),
    [(8, "optimal", 8), (7, "feasible", 8), (7, "budget", 7), (8, "infeasible", 7)],
)
def test_a_true_claim_is_accepted(bound, status, capacity):
    made = problem((8, 0, 1, 1), capacity_bytes=capacity)
    verify(Plan(made, offsets(0), "by hand", bound, status))
