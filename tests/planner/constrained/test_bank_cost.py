from hypothesis import given, settings

from tests.planner.constrained.oracle import fits, smallest
from tests.planner.constrained.problems import constrained_problems
from tests.planner.problems import problem
from tightship.planner.constrained.bank_cost import least_cost
from tightship.planner.constrained.items import items_of
from tightship.planner.constraints import Bank, Constraints


def bound_of(made):
    return least_cost(made.constraints, items_of(made))


@settings(max_examples=150, deadline=None)
@given(constrained_problems(count_max=6, parts="gaps windows groups forbidden banks capacities"))
def test_no_placement_costs_less(drawn):
    banks = drawn.constraints.banks
    capacities = [20 if bank.capacity_bytes is None else bank.capacity_bytes for bank in banks]
    if not banks or not fits(drawn, capacities):
        return
    assert bound_of(drawn) <= smallest(100, lambda cost: fits(drawn, capacities, cost))


def test_what_the_cheap_bank_has_no_room_for_is_charged_for():
    banks = Constraints(banks=(Bank("sram", 8), Bank("dram", None, 3)))
    made = problem((8, 0, 4, 1), (8, 0, 2, 1), (8, 2, 4, 1), (4, 9, 10, 1), constraints=banks)
    assert bound_of(made) == 24


def test_crowds_far_apart_in_time_are_charged_for_each():
    banks = Constraints(banks=(Bank("sram", 10), Bank("dram", None, 2), Bank("far", None, 7)))
    crowd = [(5, start, start + 2, 1) for start in (0, 5, 10) for _ in range(4)]
    assert bound_of(problem(*crowd, constraints=banks)) == 3 * 2 * 5 * 2


def test_what_is_too_large_for_the_cheap_bank_pays_for_the_other():
    banks = Constraints(banks=(Bank("sram", 8), Bank("dram", None, 3)))
    assert bound_of(problem((9, 0, 1, 1), (8, 1, 2, 1), constraints=banks)) == 27


def test_without_banks_nothing_is_charged():
    assert bound_of(problem((9, 0, 1, 1), constraints=Constraints())) == 0
