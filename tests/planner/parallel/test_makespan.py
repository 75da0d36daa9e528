"""Time of steps on a number of workers."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.planner.parallel.longest_path import longest_paths
from tightship.planner.parallel.makespan import makespan

DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3)]


@st.composite
def weighted(draw):
    """Weights of steps, and edges between them."""
    weights = draw(st.lists(st.integers(0, 9), min_size=1, max_size=12))
    pairs = [(a, b) for b in range(len(weights)) for a in range(b)]
    return weights, sorted(draw(st.sets(st.sampled_from(pairs)))) if pairs else []


@pytest.mark.parametrize(("workers", "time"), [(1, 10), (2, 8), (3, 8)])
def test_branches_run_beside_each_other(workers, time):
    assert makespan([1, 2, 6, 1], DIAMOND, workers) == time


def test_no_worker_takes_a_step_that_is_not_ready():
    assert makespan([1] * 5, list(pairwise(range(5))), 4) == 5
    assert makespan([], [], 2) == 0


@given(case=weighted())
def test_one_worker_takes_all_time_and_many_the_longest_path(case):
    weights, edges = case
    assert makespan(weights, edges, 1) == sum(weights)
    assert makespan(weights, edges, len(weights)) == longest_paths(weights, edges).longest


@given(case=weighted(), workers=st.integers(1, 4))
def test_the_time_is_within_grahams_bound(case, workers):
    weights, edges = case
    longest, whole = longest_paths(weights, edges).longest, sum(weights)
    found = makespan(weights, edges, workers)
    assert max(longest, whole / workers) <= found <= whole / workers + longest
