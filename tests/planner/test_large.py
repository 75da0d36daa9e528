import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.problems import problems
from tightship.planner.bound import lower_bound
from tightship.planner.large import LARGE_COUNT, ORDERS, large_placements
from tightship.planner.portfolio import place
from tightship.planner.problem import Problem
from tightship.planner.verify import verify_offsets


@given(drawn=problems(), effort=st.sampled_from([0, 10**4, 10**6]))
def test_more_effort_tries_more_and_nothing_wrong(drawn, effort):
    bound = lower_bound(drawn)
    placements = list(large_placements(drawn, bound, effort))
    for _, offsets in placements:
        verify_offsets(drawn, offsets)
    more = [strategy for strategy, _ in large_placements(drawn, bound, 2 * effort + 1)]
    assert [strategy for strategy, _ in placements] == more[: len(placements)]
    assert len(placements) >= 1


def test_much_effort_promotes_by_every_order():
    made = Problem(*np.ones((1, 3), np.int64) * np.array([[4], [0], [2]]), np.ones(3, np.int64))
    tried = dict(large_placements(made, 12, 10**9))
    assert {f"promote:{name}" for name in ORDERS} < set(tried)


@pytest.mark.parametrize("count", [LARGE_COUNT, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("size_bytes", [1, 2**62 // 10**7, 0])
def test_many_identical_buffers_are_packed_without_a_gap(count, size_bytes):
    start = np.arange(count, dtype=np.int64) // 10
    size = np.full(count, size_bytes, np.int64)
    plan = place(Problem(size, start, start + 1, np.ones(count, np.int64)))
    assert (plan.status, plan.peak_bytes) == ("optimal", 10 * size_bytes)


@pytest.mark.parametrize("count", [LARGE_COUNT, pytest.param(200_000, marks=pytest.mark.slow)])
def test_activations_kept_for_a_backward_pass_reach_the_bound(count):
    rng = np.random.default_rng(3)
    layer = np.arange(count // 2)
    start = np.concatenate([layer, rng.integers(0, count, count // 2)])
    stop = np.concatenate([count - layer, start[count // 2 :] + 1])
    size = rng.choice(np.array([64, 256, 1024]), count)
    plan = place(Problem(size, start, stop, np.full(count, 64)))
    assert plan.gap < 1e-3
