import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.planner.constrained.oracle import fits
from tests.planner.constrained.problems import ALL, column, constrained_problems
from tests.planner.problems import problem
from tightship.planner.bound import lower_bound
from tightship.planner.constraints import Bank, Constraints, ForbiddenRange


@pytest.mark.parametrize("parts", ["gaps windows groups forbidden", "pins forbidden gaps", ALL])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_placement_is_below_the_bound(parts, data):
    drawn = data.draw(constrained_problems(count_max=5, parts=parts))
    bound = lower_bound(drawn)
    assume(bound)
    banks = drawn.constraints.banks
    if banks:
        capacities = [20 if bank.capacity_bytes is None else bank.capacity_bytes for bank in banks]
        assert not fits(drawn, capacities, None, bound - 1)
    else:
        assert not fits(drawn, [bound - 1])


def test_what_a_group_shares_counts_once():
    group = Constraints(group=column(0, 0), group_offset_bytes=column(0, 2))
    assert lower_bound(problem((4, 0, 2, 1), (4, 1, 3, 1), constraints=group)) == 6


def test_forbidden_bytes_below_the_top_of_a_load_count():
    forbidden = Constraints(forbidden=(ForbiddenRange(2, 5, 0, 1), ForbiddenRange(9, 11, 1, 2)))
    assert lower_bound(problem((4, 0, 1, 1), (6, 1, 2, 1), constraints=forbidden)) == 7


def test_what_may_lie_in_one_bank_only_adds_up_over_banks():
    banks = Constraints(banks=(Bank("a"), Bank("b")), allowed_banks=np.eye(2, dtype=bool))
    assert lower_bound(problem((4, 0, 1, 1), (6, 1, 2, 1), constraints=banks)) == 10
