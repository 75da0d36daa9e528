import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.planted import planted
from tests.planner.problems import problems
from tightship.planner.bound import lower_bound
from tightship.planner.placements.in_one_order import best_fit, first_fit
from tightship.planner.problem import Problem
from tightship.planner.repair import LIVE_COUNT_MAX, repair
from tightship.planner.verify import verify_offsets

EFFORT = 100_000_000


def stream(count, seed=1):
    """Buffers that come and go, some twenty at a time."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 2 * count, count)
    stop = start + 1 + rng.geometric(1 / 40, count)
    return Problem(64 * rng.integers(1, 999, count), start, stop, np.full(count, 64))


@given(drawn=problems(count_max=8), data=st.data())
def test_a_repaired_placement_is_valid_and_no_higher(drawn, data):
    order = data.draw(st.permutations(range(drawn.count)))
    before = first_fit(drawn, np.array(order, np.int64))
    peak = int((before + drawn.size_bytes).max(initial=0))
    target = data.draw(st.integers(lower_bound(drawn), peak))
    after, spent = repair(drawn, before, target, effort=EFFORT)
    verify_offsets(drawn, after)
    assert (after + drawn.size_bytes).max(initial=0) <= peak
    assert spent >= 0


@pytest.mark.parametrize("count", [300, 6_000])
def test_a_stream_is_brought_down_to_its_load(count):
    made = stream(count)
    bound = lower_bound(made)
    before = best_fit(made)
    assert (before + made.size_bytes).max() > bound
    after, _ = repair(made, before, bound, effort=20 * EFFORT)
    verify_offsets(made, after)
    assert (after + made.size_bytes).max() == bound


def test_what_is_too_much_to_search_or_already_low_is_left_alone():
    count = LIVE_COUNT_MAX + 1
    size = np.full(count, 64)
    crowded = Problem(size, np.zeros(count, np.int64), np.ones(count, np.int64), size)
    spread = 128 * np.arange(count)
    after, _ = repair(crowded, spread, 64 * count, effort=EFFORT)
    assert after.tolist() == spread.tolist()
    low = planted(3, 12, 256)
    placed = best_fit(low)
    peak = int((placed + low.size_bytes).max())
    assert repair(low, placed, peak, effort=EFFORT)[0].tolist() == placed.tolist()
