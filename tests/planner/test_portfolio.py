import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.oracles import smallest_peak
from tests.planner.planted import planted
from tests.planner.problems import problem, problems
from tightship._core import StopFlag
from tightship.planner import portfolio
from tightship.planner.bound import lower_bound
from tightship.planner.format import read_csv
from tightship.planner.plan import Conflict
from tightship.planner.portfolio import place
from tightship.planner.verify import verify

INSTANCES = os.environ.get("TIGHTSHIP_PLANNER_INSTANCES")


@given(problems())
def test_a_plan_is_verified_and_between_bound_and_sum(drawn):
    plan = place(drawn)
    verify(plan)
    padded = int((drawn.size_bytes + drawn.alignment - 1).sum())
    assert lower_bound(drawn) <= plan.lower_bound_bytes <= plan.peak_bytes <= padded


@given(problems(count_max=6))
def test_a_plan_called_optimal_is(drawn):
    plan = place(drawn)
    smallest = smallest_peak(drawn)
    assert smallest <= plan.peak_bytes
    assert plan.status == "feasible" or plan.peak_bytes == smallest


@given(problems())
def test_the_same_problem_gives_the_same_plan(drawn):
    one, other = place(drawn), place(drawn)
    assert one.offset_bytes.tolist() == other.offset_bytes.tolist()
    assert one.strategy == other.strategy


def test_no_buffers_need_no_bytes():
    plan = place(problem())
    assert (plan.peak_bytes, plan.status) == (0, "optimal")


@pytest.mark.parametrize(
    ("capacity", "status"), [(None, "optimal"), (20, "optimal"), (19, "infeasible")]
)
def test_a_capacity_decides_the_status(capacity, status):
    plan = place(problem((8, 0, 2, 1), (12, 1, 3, 1), capacity_bytes=capacity))
    assert (plan.peak_bytes, plan.status) == (20, status)


@pytest.mark.parametrize(
    ("capacity", "bound", "status"),
    [(49, 35, "feasible"), (48, 49, "infeasible"), (35, 36, "infeasible"), (34, 35, "infeasible")],
)
def test_a_search_decides_what_the_bound_does_not(capacity, bound, status):
    # The third buffer's alignment of 1 keeps the padding of the others out of the bound.
    made = problem((17, 0, 1, 16), (17, 0, 1, 16), (1, 0, 1, 1), capacity_bytes=capacity)
    plan = place(made)
    assert (plan.lower_bound_bytes, plan.peak_bytes, plan.status) == (bound, 49, status)
    assert (plan.conflict is not None) == (status == "infeasible")


def test_what_exceeds_the_capacity_in_one_step_is_named():
    made = problem((8, 0, 2, 1), (12, 1, 3, 1), (3, 2, 4, 1), capacity_bytes=19)
    plan = place(made)
    assert (plan.status, plan.conflict) == ("infeasible", Conflict((0, 1), is_minimal=True))


def test_a_search_that_may_not_look_leaves_open_what_the_bound_does_not_decide():
    made = problem((17, 0, 1, 16), (17, 0, 1, 16), (1, 0, 1, 1), capacity_bytes=40)
    plan = place(made, effort=0)
    assert (plan.status, plan.conflict) == ("budget", None)


@given(problems(count_max=6))
def test_the_smallest_plan_is_found_and_proved(drawn):
    plan = place(drawn)
    assert (plan.status, plan.peak_bytes) == ("optimal", smallest_peak(drawn))


@given(problems(count_max=6), st.integers(0, 200))
def test_a_capacity_is_met_or_proved_too_small(drawn, capacity):
    plan = place(replace(drawn, capacity_bytes=capacity), goal="fit")
    fits = smallest_peak(drawn) <= capacity
    assert plan.fits == fits
    assert (plan.status == "infeasible") == (not fits)


def test_a_goal_of_the_smallest_goes_below_the_capacity():
    made = planted(seed=3, cuts=20, capacity=64)
    roomy = replace(made, capacity_bytes=10 * 64)
    assert place(roomy, goal="minimize").peak_bytes == 64


def test_a_set_stop_flag_ends_the_search_with_a_plan_that_is_valid():
    flag = StopFlag()
    flag.set()
    made = planted(seed=3, cuts=60, capacity=1024)
    plan = place(made, stop=flag)
    verify(plan)
    assert plan.strategy != "exact"


def test_without_effort_there_is_still_a_plan():
    drawn = problem(*((size, size % 5, 6 + size % 3, 1) for size in range(1, 20)))
    verify(place(drawn, effort=0))
    assert place(drawn).peak_bytes <= place(drawn, effort=0).peak_bytes


@pytest.mark.skipif(INSTANCES is None, reason="TIGHTSHIP_PLANNER_INSTANCES names no folder")
def test_deep_learning_traces_reach_their_lower_bound():
    paths = sorted(Path(INSTANCES, "torch_traces").glob("*.csv"))
    assert paths
    for path in paths:
        plan = place(read_csv(path)[0])
        assert plan.status == "optimal", path.name


def test_a_time_limit_searches_with_growing_effort_until_the_plan_is_proved(monkeypatch):
    made, efforts = problem((8, 0, 2, 1), (8, 1, 3, 1)), []

    def placed(asked, *, effort, **options):
        efforts.append(effort)
        return place(asked, **options) if len(efforts) == 3 else worse

    worse = place(problem((8, 0, 2, 1), (8, 1, 3, 1), (1, 0, 3, 1), capacity_bytes=16), effort=0)
    assert worse.status == "infeasible"
    worse = replace(worse, status="feasible")
    monkeypatch.setattr(portfolio, "place", placed)
    found = portfolio.place_within(made, None, 1, 600.0)
    assert (found.status, found.peak_bytes) == ("optimal", 16)
    assert efforts == [efforts[0], 4 * efforts[0], 16 * efforts[0]]


def test_a_time_limit_ends_a_search_that_would_go_on(monkeypatch):
    calls = []

    def endless(asked, *, stop, **_):
        calls.append(stop)
        while not stop.is_set():
            pass
        return replace(place(asked), status="feasible")

    monkeypatch.setattr(portfolio, "place", endless)
    found = portfolio.place_within(problem((8, 0, 2, 1)), "minimize", 1, 0.05)
    assert found.peak_bytes == 8
    assert len(calls) == 1
