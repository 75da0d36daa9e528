"""Problems at the edges of what can be stated: empty, huge, coprime, hard."""

import numpy as np
import pytest

from tests.planner.planted import planted
from tests.planner.problems import problem
from tightship.planner.constraints import Constraints
from tightship.planner.format import read_csv, read_plan, write_csv, write_plan
from tightship.planner.portfolio import place
from tightship.planner.problem import TOTAL_BYTES_MAX

LARGEST = TOTAL_BYTES_MAX - 1
"""The largest sum of sizes."""


@pytest.fixture(params=[None, Constraints()], ids=["plain", "constrained"])
def constraints(request):
    return request.param


def test_the_largest_sizes_are_planned_written_and_read(tmp_path, constraints):
    third = LARGEST // 3
    rows = ((third, 0, 2, 1), (third, 1, 3, 1), (third, 2, 4, 1))
    made = problem(*rows, constraints=constraints)
    plan = place(made)
    assert (plan.peak_bytes, plan.status) == (2 * third, "optimal")
    write_plan(tmp_path / "plan.json", plan)
    assert read_plan(tmp_path / "plan.json").offset_bytes.tolist() == plan.offset_bytes.tolist()
    write_csv(tmp_path / "plan.csv", made, plan.offset_bytes)
    again, offsets = read_csv(tmp_path / "plan.csv")
    assert again.size_bytes.tolist() == [third] * 3
    assert offsets.tolist() == plan.offset_bytes.tolist()


@pytest.mark.parametrize("unit", [1, 2**31, 2**55])
def test_sizes_without_a_common_divisor_are_decided_to_the_byte(unit, constraints):
    # Two of three must lie above each other in each step but one; 7 units less 1 is the load.
    rows = ((3 * unit + 1, 0, 2, 1), (4 * unit - 2, 1, 3, 1), (3 * unit + 1, 2, 4, 1))
    least = 7 * unit - 1
    made = problem(*rows, capacity_bytes=least, constraints=constraints)
    assert (place(made).status, place(made).peak_bytes) == ("optimal", least)
    less = place(problem(*rows, capacity_bytes=least - 1, constraints=constraints))
    assert (less.status, less.lower_bound_bytes) == ("infeasible", least)
    assert less.conflict.is_minimal


@pytest.mark.parametrize("count", [1, 3, 100])
def test_buffers_without_a_byte_need_none(count, constraints):
    made = problem(*[(0, index, index + 2, 64) for index in range(count)], constraints=constraints)
    assert (place(made).peak_bytes, place(made).status) == (0, "optimal")
    one = problem((0, 0, 9, 64), (5, 2, 4, 1), (0, 3, 4, 1), constraints=constraints)
    assert place(one).peak_bytes == 5


def test_no_buffers_with_constraints_are_a_problem_too():
    plan = place(problem(constraints=Constraints()))
    assert (plan.peak_bytes, plan.status) == (0, "optimal")


@pytest.mark.parametrize("goal", ["fit", "minimize"])
@pytest.mark.parametrize("seed", range(3))
def test_a_hard_plan_is_the_same_to_the_byte_on_any_number_of_threads(seed, goal, constraints):
    drawn = planted(seed, 45, 1000, shaved=0.05)
    made = problem(*drawn.columns().T, constraints=constraints, capacity_bytes=1000)
    plans = [place(made, goal=goal, effort=10**7, threads=threads) for threads in (1, 2, 6)]
    assert len({plan.offset_bytes.tobytes() for plan in plans}) == 1
    assert len({(plan.status, plan.strategy, plan.lower_bound_bytes) for plan in plans}) == 1


def test_many_identical_buffers_under_constraints_are_stacked():
    size = np.full(300, 7, np.int64)
    start = np.arange(300, dtype=np.int64) // 6
    plan = place(problem(*zip(size, start, start + 1, size // 7, strict=True),
                         constraints=Constraints()))  # fmt: skip
    assert (plan.peak_bytes, plan.status) == (42, "optimal")
