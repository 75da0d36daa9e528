import numpy as np
from hypothesis import given

from tests.planner.constrained.problems import ALL, column, constrained_problems, is_valid
from tests.planner.problems import problem
from tightship.planner.bound import lower_bound
from tightship.planner.constrained.items import items_of
from tightship.planner.constrained.orders import NO_LIMIT, best_in_order
from tightship.planner.constraints import FREE, Bank, Constraints

NO_TARGET = (0, 0, 0)


def placed(made, rounds=1, target=NO_TARGET):
    return best_in_order(made, items_of(made), target, rounds=rounds)


@given(constrained_problems(parts=ALL))
def test_placements_in_order_honour_every_constraint_but_capacities(drawn):
    best = placed(drawn)
    assert is_valid(drawn, best.plan.offset_bytes, best.plan.bank)
    assert (best.score[0] == 0) == best.plan.fits
    assert best.score[1:] == (best.plan.cost, best.plan.peak_bytes)


def test_an_item_fits_exactly_below_and_between_what_is_placed():
    pinned = Constraints(column(4, 12, FREE, FREE))
    best = placed(problem(*[(4, 0, 2, 1)] * 4, constraints=pinned))
    assert sorted(best.plan.offset_bytes.tolist()) == [0, 4, 8, 12]


def test_pinned_items_are_placed_before_all_others():
    # By every order but that of start the large buffer comes first, and would lie at 0.
    pinned = Constraints(column(FREE, 0))
    best = placed(problem((9, 0, 5, 1), (1, 2, 3, 1), constraints=pinned))
    assert (best.plan.offset_bytes.tolist(), best.score) == ([1, 0], (0, 0, 10))


def test_pins_in_the_bytes_of_others_are_beyond_every_capacity():
    pinned = Constraints(column(0, 3))
    assert placed(problem((4, 0, 1, 1), (4, 0, 1, 1), constraints=pinned)).score[0] >= NO_LIMIT


def test_what_exceeds_the_banks_least_comes_before_what_costs_least():
    banks = Constraints(banks=(Bank("a", 8), Bank("b", 8, 1)))
    best = placed(problem((8, 0, 2, 1), (5, 1, 3, 1), constraints=banks))
    assert (best.score, sorted(best.plan.bank.tolist())) == ((0, 5, 13), [0, 1])


def test_more_rounds_are_never_worse():
    rng = np.random.default_rng(5)
    size, start = rng.integers(1, 64, 60), rng.integers(0, 40, 60)
    rows = zip(size, start, start + rng.integers(1, 20, 60), [1] * 60, strict=True)
    made = problem(*rows, constraints=Constraints())
    target = (0, 0, lower_bound(made))
    scores = [placed(made, rounds, target).score for rounds in (1, 5, 60)]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] < scores[0]
