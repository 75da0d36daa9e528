import pytest
from hypothesis import assume, given, settings

from tests.planner.constrained.oracle import fits, smallest
from tests.planner.constrained.problems import ALL, column, constrained_problems, is_valid
from tests.planner.problems import problem
from tightship.planner.constraints import FREE, Bank, Constraints, ForbiddenRange
from tightship.planner.part import part_of
from tightship.planner.portfolio import place

EFFORT = 10**9


@settings(max_examples=60, deadline=None)
@given(constrained_problems(count_max=5, parts="gaps windows groups forbidden"))
def test_the_smallest_peak_is_found_and_proved(drawn):
    plan = place(drawn, effort=EFFORT)
    assert is_valid(drawn, plan.offset_bytes)
    assert plan.status == "optimal"
    assert plan.peak_bytes == smallest(60, lambda peak: fits(drawn, [peak]))


@settings(max_examples=60, deadline=None)
@given(constrained_problems(count_max=5, parts=ALL))
def test_the_least_cost_comes_first_and_the_smallest_peak_second(drawn):
    banks = drawn.constraints.banks
    assume(banks)
    capacities = [20 if bank.capacity_bytes is None else bank.capacity_bytes for bank in banks]
    plan = place(drawn, effort=EFFORT)
    if not fits(drawn, capacities):
        assert plan.status == "infeasible"
        assert not fits(part_of(drawn, column(*plan.conflict.buffers)), capacities)
        return
    assert plan.status == "optimal"
    assert plan.cost == smallest(100, lambda cost: fits(drawn, capacities, cost))
    assert plan.peak_bytes == smallest(100, lambda peak: fits(drawn, capacities, plan.cost, peak))


@settings(max_examples=60, deadline=None)
@given(constrained_problems(count_max=6, parts="gaps groups forbidden"))
def test_a_minimal_conflict_does_not_fit_and_less_of_it_does(drawn):
    peak = smallest(60, lambda peak: fits(drawn, [peak]))
    assume(peak)
    rows = drawn.columns().T.tolist()
    made = problem(*rows, constraints=drawn.constraints, capacity_bytes=peak - 1)
    plan = place(made, effort=EFFORT)
    assert plan.status == "infeasible"
    assert plan.lower_bound_bytes >= peak
    assert plan.conflict.is_minimal
    buffers = list(plan.conflict.buffers)
    assert not fits(part_of(made, column(*buffers)), [peak - 1])
    for buffer in buffers:
        rest = column(*(other for other in buffers if other != buffer))
        assert fits(part_of(made, rest), [peak - 1])


def test_a_pin_in_the_middle_and_the_buffer_that_fits_on_neither_side_conflict():
    made = problem((2, 0, 4, 1), (5, 1, 3, 1), (9, 5, 6, 1), capacity_bytes=10,
                   constraints=Constraints(column(4, FREE, FREE)))  # fmt: skip
    plan = place(made)
    assert (plan.status, plan.conflict.buffers) == ("infeasible", (0, 1))
    assert plan.lower_bound_bytes == 11 == place(made, goal="minimize").peak_bytes


def test_no_bank_holds_the_conflict_of_banks():
    banks = (Bank("a", 6), Bank("b", 6))
    rows = ((4, 0, 2, 1), (1, 0, 1, 1), (4, 1, 3, 1), (4, 0, 3, 1))
    plan = place(problem(*rows, constraints=Constraints(banks=banks)))
    assert (plan.status, plan.conflict.buffers) == ("infeasible", (0, 2, 3))


def test_goal_fit_is_content_with_a_plan_that_fits():
    rows = ((4, 0, 2, 1), (3, 1, 3, 1), (4, 2, 4, 1))
    forbidden = Constraints(forbidden=(ForbiddenRange(4, 5),))
    made = problem(*rows, constraints=forbidden, capacity_bytes=40)
    assert place(made).status in ("feasible", "optimal")
    assert place(made, goal="minimize").status == "optimal"


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_no_plan(threads):
    rows = [(1 + 7 * i % 11, i % 9, i % 9 + 2 + i % 4, 1) for i in range(24)]
    banks = (Bank("a", 18), Bank("b", 24, 1), Bank("c", None, 4))
    made = problem(*rows, constraints=Constraints(banks=banks))
    one, other = (place(made, effort=10**7, threads=count) for count in (1, threads))
    assert one.offset_bytes.tobytes() == other.offset_bytes.tobytes()
    assert one.bank.tobytes() == other.bank.tobytes()
    assert (one.status, one.lower_bound_bytes) == (other.status, other.lower_bound_bytes)
