import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.problems import problem, problems, rows
from tightship.errors import PlanError
from tightship.planner.penalties import ReusePenalties
from tightship.planner.plan import Plan
from tightship.planner.portfolio import place
from tightship.planner.reuse import reduce_reuse
from tightship.planner.verify_reuse import reuse_cost


def penalties(*pairs):
    return ReusePenalties(np.array(pairs, np.int64).reshape(-1, 3))


def with_capacity(made, capacity):
    return problem(*np.stack(made.columns(), axis=1).tolist(), capacity_bytes=capacity)


@st.composite
def pairs_of(draw, count):
    chosen = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1), st.integers(0, 9))
    return [pair for pair in draw(st.lists(chosen, max_size=12)) if pair[0] != pair[1]]


@given(drawn=st.lists(rows(), min_size=1, max_size=10), data=st.data(), spare=st.integers(0, 64))
def test_reuse_is_reduced_within_the_capacity_and_never_raised(drawn, data, spare):
    made = problem(*drawn)
    plan = place(with_capacity(made, place(made).peak_bytes + spare))
    given_pairs = penalties(*data.draw(pairs_of(made.count)))
    reduced = reduce_reuse(plan, given_pairs, moves=50)
    assert reduced.fits
    costs = [reuse_cost(made, given_pairs, one.offset_bytes) for one in (plan, reduced)]
    assert costs[1] <= costs[0]
    again = reduce_reuse(plan, given_pairs, moves=50)
    assert again.offset_bytes.tolist() == reduced.offset_bytes.tolist()


@given(drawn=problems(count_max=6), data=st.data())
def test_with_room_for_all_nothing_is_reused(drawn, data):
    if drawn.count < 2:
        return
    plan = place(with_capacity(drawn, 40 * drawn.total_bytes + 1000))
    every = penalties(*data.draw(pairs_of(drawn.count)))
    live = [pair for pair in every.rows.tolist() if pair[2]]
    reduced = reduce_reuse(plan, penalties(*live), moves=2000)
    assert reuse_cost(drawn, penalties(*live), reduced.offset_bytes) == 0


def test_the_dearer_of_two_pairs_is_kept_apart():
    made = problem((8, 0, 1, 1), (8, 1, 2, 1), (8, 2, 3, 1), capacity_bytes=16)
    pairs = penalties((0, 1, 5), (1, 2, 4), (0, 2, 1))
    reduced = reduce_reuse(place(made), pairs)
    assert reuse_cost(made, pairs, reduced.offset_bytes) == 1


def test_penalties_are_of_buffers_and_plans_have_a_capacity():
    made = problem((8, 0, 1, 1), (8, 0, 1, 1), capacity_bytes=16)
    with pytest.raises(PlanError, match="Penalty 0 names buffers 0 and 2; there are 2"):
        reduce_reuse(place(made), penalties((0, 2, 1)))
    with pytest.raises(PlanError, match="must have a capacity"):
        reduce_reuse(place(problem((8, 0, 1, 1))), penalties())
    small = problem((8, 0, 1, 1), capacity_bytes=4)
    with pytest.raises(PlanError, match="fit it"):
        reduce_reuse(Plan(small, np.zeros(1, np.int64), "", 8, "infeasible"), penalties())
