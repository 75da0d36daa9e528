"""Runs that a budget does not need are left out, the dearest first."""

from hypothesis import given
from hypothesis import strategies as st

from tests.planner.chains import chain
from tightship.planner.run_bytes import RunBytes
from tightship.planner.spared import spared


def segments(length, segment):
    """Runs of equal segments, each again as a whole before its way back."""
    runs = list(range(length))
    for start in reversed(range(0, length, segment)):
        stop = min(start + segment, length)
        runs += range(start, stop)
        runs += [2 * length - 1 - index for index in reversed(range(start, stop))]
    return runs


def test_nothing_runs_again_where_all_fits():
    schedule, costs = chain(24)
    bytes_ = RunBytes(schedule)
    all_kept = int(bytes_.lives(range(48)).load.max())
    assert spared(bytes_, costs, segments(24, 6), all_kept) == list(range(48))


def test_dear_steps_are_spared_first():
    schedule, costs = chain(24)
    bytes_ = RunBytes(schedule)
    runs = segments(24, 6)
    given_load = int(bytes_.lives(runs).load.max())
    left = spared(bytes_, costs, runs, given_load + 5 * 64)
    again = [step for step in set(left) if left.count(step) > 1]
    assert sum(costs[step] == 1000 for step in again) < sum(costs[step] == 10 for step in again)


@given(length=st.integers(2, 20), segment=st.integers(1, 8), more=st.integers(0, 12))
def test_the_budget_is_kept_and_no_run_left_out_would_have_been_needed(length, segment, more):
    schedule, costs = chain(length)
    bytes_ = RunBytes(schedule)
    runs = segments(length, segment)
    budget = int(bytes_.lives(runs).load.max()) + 64 * more
    left = spared(bytes_, costs, runs, budget)
    assert bytes_.lives(left).load.max() <= budget
    assert len(left) <= len(runs)
    assert set(left) == set(runs)
    made = set()
    for step in left:  # every read finds what a run before it has written
        assert made.issuperset(bytes_.reads[step])
        made.update(bytes_.writes[step])
