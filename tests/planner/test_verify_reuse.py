import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.problems import problem, rows
from tightship.errors import InvalidPlanError
from tightship.planner.penalties import ReusePenalties
from tightship.planner.plan import Plan
from tightship.planner.verify_reuse import reuse_cost, verified_reuse_cost


def penalties(*pairs):
    return ReusePenalties(np.array(pairs, np.int64).reshape(-1, 3))


def cost_by_bytes(made, pairs, offsets):
    """Return the reuse cost, computed from every byte and step of each buffer."""
    bytes_of = [set(range(o, o + s)) for o, s in zip(offsets, made.size_bytes, strict=True)]
    steps_of = [set(range(a, b)) for a, b in zip(made.start_step, made.stop_step, strict=True)]
    return sum(
        cost
        for first, second, cost in pairs
        if bytes_of[first] & bytes_of[second] and not steps_of[first] & steps_of[second]
    )


@given(drawn=st.lists(rows(), min_size=2, max_size=6), data=st.data())
def test_the_cost_is_that_of_pairs_with_a_byte_and_no_step_in_common(drawn, data):
    made = problem(*drawn)
    index = st.integers(0, made.count - 1)
    pairs = data.draw(st.lists(st.tuples(index, index, st.integers(0, 9)), max_size=12))
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    offsets = data.draw(st.lists(st.integers(0, 40), min_size=len(drawn), max_size=len(drawn)))
    found = reuse_cost(made, penalties(*pairs), np.array(offsets))
    assert found == cost_by_bytes(made, pairs, offsets)


def test_one_byte_shared_costs_all_and_one_that_only_touches_nothing():
    made = problem((8, 0, 1, 1), (8, 1, 2, 1))
    assert reuse_cost(made, penalties((0, 1, 5)), np.array([0, 7])) == 5
    assert reuse_cost(made, penalties((0, 1, 5)), np.array([0, 8])) == 0


def test_a_cost_is_reported_only_of_a_valid_plan():
    made = problem((8, 0, 2, 1), (8, 1, 2, 1), (8, 2, 3, 1))
    right = Plan(made, np.array([0, 8, 0]), "", 16, "optimal")
    assert verified_reuse_cost(right, penalties((0, 2, 3), (1, 2, 4))) == 3
    wrong = Plan(made, np.array([0, 7, 0]), "", 0, "feasible")
    with pytest.raises(InvalidPlanError, match="overlap"):
        verified_reuse_cost(wrong, penalties((0, 2, 3)))
