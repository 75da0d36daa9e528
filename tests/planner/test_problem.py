from dataclasses import replace

import numpy as np
import pytest

from tests.planner.problems import problem
from tightship.errors import InputError, PlanError
from tightship.planner.constraints import Bank
from tightship.planner.problem import Problem


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((-4, 0, 1, 1), "Buffer 1 `b` has size_bytes=-4; it must be >= 0."),
        ((4, -1, 1, 1), "Buffer 1 `b` has start_step=-1; it must be >= 0."),
        ((4, 2, 2, 1), r"Buffer 1 `b` lives in steps \[2, 2\)"),
        ((4, 3, 2, 1), r"Buffer 1 `b` lives in steps \[3, 2\)"),
        ((4, 0, 1, 0), "Buffer 1 `b` has alignment=0; it must be a power of two."),
        ((4, 0, 1, 12), "Buffer 1 `b` has alignment=12"),
        ((4, 0, 1, -(2**63)), "Buffer 1 `b` has alignment=-"),
        ((2**62, 0, 1, 1), "add up to .* at buffer 1 `b`"),
        ((1, 0, 1, 2**62), "add up to .* at buffer 1 `b`"),
    ],
)
def test_a_bad_buffer_is_refused_by_name(row, words):
    with pytest.raises(PlanError, match=words):
        problem((8, 0, 1, 1), row, names=("a", "b"))


def test_sizes_that_overflow_only_together_are_refused():
    with pytest.raises(PlanError, match="at buffer 2;"):
        problem((2**61, 0, 1, 1), (2**60, 5, 6, 1), (2**60, 8, 9, 1))


@pytest.mark.parametrize("column", ["start_step", "stop_step", "alignment"])
def test_columns_of_different_lengths_are_refused(column):
    columns = {
        name: np.array([1, 2], np.int64)
        for name in ("size_bytes", "start_step", "stop_step", "alignment")
    }
    with pytest.raises(PlanError, match=f"Column `{column}` has 1 entries"):
        Problem(**columns | {column: np.array([1], np.int64)})


def test_names_of_another_number_are_refused():
    with pytest.raises(PlanError, match="Column `names` has 2 entries"):
        problem((1, 0, 1, 1), names=("a", "b"))


def test_a_column_of_another_type_is_refused():
    ones = np.ones(1, np.int64)
    with pytest.raises(PlanError, match=r"Column `stop_step` is float64 of shape \(1,\)"):
        Problem(ones, ones - 1, ones.astype(np.float64), ones)
    with pytest.raises(PlanError, match=r"shape \(1, 1\)"):
        Problem(ones, ones - 1, ones.reshape(1, 1), ones)


def test_a_negative_capacity_is_refused():
    with pytest.raises(PlanError, match="capacity_bytes is -1"):
        problem(capacity_bytes=-1)


@pytest.mark.parametrize(("text", "capacity_bytes"), [("512KiB", 2**19), ("0", 0), ("1.5K", 1536)])
def test_capacities_are_also_given_as_text(text: str, capacity_bytes: int):
    assert problem(capacity_bytes=text).capacity_bytes == capacity_bytes
    assert replace(problem((1, 0, 1, 1)), capacity_bytes=text).capacity_bytes == capacity_bytes
    assert Bank("fast", text).capacity_bytes == Bank("fast", capacity_bytes).capacity_bytes


def test_a_text_that_is_not_an_amount_is_refused():
    with pytest.raises(InputError, match="`capacity_bytes`: `many` is not an amount of memory"):
        problem(capacity_bytes="many")
    with pytest.raises(InputError, match="`capacity_bytes`: `many` is not an amount of memory"):
        Bank("fast", "many")


def test_columns_are_copies_that_cannot_be_written():
    sizes = np.array([4], np.int64)
    made = Problem(sizes, sizes - 4, sizes, sizes)
    sizes[0] = 5
    assert made.size_bytes.tolist() == [4]
    with pytest.raises(ValueError, match="read-only"):
        made.size_bytes[0] = 6


def test_load_counts_a_buffer_in_each_step_of_its_lifetime():
    made = problem((4, 0, 2, 1), (1, 1, 4, 1), (8, 9, 10, 1))
    assert made.live_bytes(5).tolist() == [4, 5, 1, 1, 0]
    assert made.live_bytes(1).tolist() == [4]
    assert made.total_bytes == 13


def test_no_buffers_are_a_problem_too():
    assert problem().count == 0
    assert problem().live_bytes(3).tolist() == [0, 0, 0]
