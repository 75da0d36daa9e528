from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planner.constrained.problems import ALL, column, constrained_problems, is_valid
from tests.planner.problems import problem
from tightship.errors import InvalidPlanError
from tightship.planner.bound import lower_bound
from tightship.planner.constrained.items import items_of
from tightship.planner.constrained.plan import constrained_plan
from tightship.planner.constraints import FREE, Bank, Constraints, ForbiddenRange
from tightship.planner.portfolio import place

EFFORT = 10**5


@given(drawn=constrained_problems(parts=ALL))
def test_a_plan_honours_every_constraint(drawn):
    plan = place(drawn, effort=EFFORT)
    assert is_valid(drawn, plan.offset_bytes, plan.bank)
    assert plan.peak_bytes >= plan.lower_bound_bytes


@settings(max_examples=40)
@given(drawn=constrained_problems(count_max=3, parts="gaps groups forbidden"))
def test_no_plan_is_below_the_bound(drawn):
    items = items_of(drawn)
    bound = lower_bound(drawn)
    for bases in product(range(bound), repeat=items.count):
        offsets = np.array(bases)[items.of_buffer] + items.offset_bytes
        peak = (offsets + drawn.size_bytes).max()
        assert peak >= bound or not is_valid(drawn, offsets)


@given(drawn=constrained_problems(parts="gaps groups"), data=st.data())
def test_pins_taken_from_a_plan_are_kept(drawn, data):
    plan = place(drawn, effort=EFFORT)
    pinned = np.array([data.draw(st.booleans()) for _ in range(drawn.count)])
    given_constraints = drawn.constraints
    constraints = Constraints(
        np.where(pinned, plan.offset_bytes, FREE),
        given_constraints.gaps,
        group=given_constraints.group,
        group_offset_bytes=given_constraints.group_offset_bytes,
    )
    rows = np.stack(drawn.columns(), axis=1).tolist()
    again = place(problem(*rows, constraints=constraints), effort=EFFORT)
    assert (again.offset_bytes[pinned] == plan.offset_bytes[pinned]).all()
    assert is_valid(drawn, again.offset_bytes)


def test_every_bank_has_a_topmost_buffer_that_needs_no_padding():
    banks = Constraints(banks=(Bank("a", 1), Bank("b", 1)))
    plan = place(problem((1, 0, 1, 2), (1, 0, 1, 2), constraints=banks))
    assert (plan.lower_bound_bytes, plan.peak_bytes, plan.status) == (2, 2, "optimal")


def test_bytes_that_two_buffers_keep_lie_beside_each_other_without_padding():
    gaps = Constraints(gaps=np.array([[0, 1, 2], [1, 1, 2]]),
                       gap_window_bytes=np.array([[0, 2], [2, 4]]))  # fmt: skip
    made = problem((4, 0, 2, 4), (4, 1, 3, 4), constraints=gaps)
    assert (place(made).peak_bytes, place(made).status) == (4, "optimal")


def test_another_buffer_lies_in_a_gap():
    gaps = np.array([[0, 2, 4]])
    made = problem((8, 0, 6, 1), (8, 2, 4, 1), constraints=Constraints(gaps=gaps))
    plan = place(made)
    assert (plan.offset_bytes.tolist(), plan.peak_bytes, plan.status) == ([0, 0], 8, "optimal")


def test_parts_of_a_result_lie_in_it_and_others_beside():
    # 1 and 2 are written into 0 before it is there as a whole; 3 is live with 1 alone.
    group = Constraints(group=column(0, 0, 0, FREE), group_offset_bytes=column(0, 0, 8, 0))
    made = problem((16, 2, 4, 1), (8, 0, 3, 1), (8, 1, 3, 1), (8, 0, 1, 1), constraints=group)
    plan = place(made)
    assert plan.offset_bytes.tolist() == [0, 0, 8, 8]
    assert plan.status == "optimal"


def test_a_group_whose_base_must_be_misaligned_is_placed_so_that_its_members_are_not():
    group = Constraints(group=column(0, 0, FREE), group_offset_bytes=column(4, 12, 0))
    made = problem((8, 0, 2, 8), (8, 0, 2, 8), (4, 0, 2, 8), constraints=group)
    plan = place(made)
    assert (plan.offset_bytes % 8).tolist() == [0, 0, 0]
    assert plan.peak_bytes == 20


def test_forbidden_bytes_raise_the_bound_and_are_left_alone():
    forbidden = (ForbiddenRange(4, 10, 0, 2), ForbiddenRange(12, 14, 5, 6))
    made = problem((8, 0, 2, 1), (4, 0, 2, 1), constraints=Constraints(forbidden=forbidden))
    plan = place(made)
    assert (plan.peak_bytes, plan.status) == (18, "optimal")
    assert plan.offset_bytes.tolist() == [10, 0]


def test_the_cheap_bank_is_filled_first_and_cost_counts_more_than_the_peak():
    banks = (Bank("sram", 8), Bank("dram", None, 3))
    made = problem((8, 0, 4, 1), (8, 0, 2, 1), (8, 2, 4, 1), (4, 9, 10, 1),
                   constraints=Constraints(banks=banks))  # fmt: skip
    plan = place(made)
    assert plan.bank.tolist() == [1, 0, 0, 0]
    assert (plan.cost, plan.peak_bytes, plan.bank_peak_bytes) == (24, 16, (8, 8))


def test_a_buffer_that_fits_nowhere_is_placed_and_the_status_says_so():
    allowed = np.array([[True, False], [True, False]])
    banks = (Bank("sram", 8), Bank("dram"))
    made = problem(
        (8, 0, 1, 1), (8, 0, 1, 1), constraints=Constraints(banks=banks, allowed_banks=allowed)
    )
    plan = place(made)
    assert (plan.status, plan.bank.tolist(), plan.fits) == ("infeasible", [0, 0], False)
    assert plan.conflict.buffers == (0, 1)
    assert place(made, effort=0).status == "budget"


def test_promotion_finds_what_single_orders_miss():
    rng = np.random.default_rng(5)
    size = rng.integers(1, 64, 60)
    start = rng.integers(0, 40, 60)
    made = problem(*zip(size, start, start + rng.integers(1, 20, 60), [1] * 60, strict=True),
                   constraints=Constraints())  # fmt: skip
    single, promoted = (constrained_plan(made, "minimize", effort) for effort in (0, 10**8))
    assert promoted.peak_bytes < single.peak_bytes


@pytest.mark.parametrize("scale", [1, 2**55])
def test_offsets_near_the_limit_of_int64_are_exact(scale):
    made = problem((3 * scale, 0, 2, 1), (5 * scale, 0, 2, 1), (7 * scale, 1, 3, 1),
                   constraints=Constraints(pinned_offset_bytes=column(FREE, 0, FREE)))  # fmt: skip
    assert place(made).peak_bytes == 15 * scale


def test_pins_that_collide_are_an_error():
    pinned = Constraints(pinned_offset_bytes=column(0, 4))
    with pytest.raises(InvalidPlanError, match=r"Buffers 0 and 1 overlap: bytes \[4, 8\)"):
        place(problem((8, 0, 1, 1), (8, 0, 1, 1), constraints=pinned))
