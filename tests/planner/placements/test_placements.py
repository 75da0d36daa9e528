"""Properties of every placement, and the rule of each on buffers worked by hand."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.problems import problem, problems
from tightship.planner import large, portfolio
from tightship.planner.bound import lower_bound
from tightship.planner.placements import order
from tightship.planner.placements.in_one_order import (
    best_fit,
    first_fit,
    greedy_by_size,
    lowest_first,
    promote,
)
from tightship.planner.placements.shared_objects import shared_objects
from tightship.planner.verify import verify_offsets

PLACEMENTS = {
    "best_fit": best_fit,
    "greedy_by_size": greedy_by_size,
    "first_fit": lambda problem: first_fit(problem, order.by_start(problem)),
    "lowest_first": lambda problem: lowest_first(problem, order.by_load(problem)),
    "promote": lambda problem: promote(problem, order.by_size(problem), 0, 5),
    "shared_objects": shared_objects,
    "shared_objects_without_sharing": lambda problem: shared_objects(problem, 0),
}


def test_every_placement_that_plans_are_made_by_is_in_the_table():
    used = {
        name
        for module in (portfolio, large)
        for name, thing in vars(module).items()
        if inspect.isfunction(thing) and thing.__module__.startswith(order.__package__)
    }
    assert "greedy_by_size" in used
    assert used - PLACEMENTS.keys() == set()


def order_of(*indices):
    return np.array(indices, np.int64)


def peak_of(problem, offsets) -> int:
    return int((offsets + problem.size_bytes).max(initial=0))


@pytest.mark.parametrize("place", PLACEMENTS.values(), ids=PLACEMENTS)
@given(drawn=problems(count_max=20))
def test_a_placement_is_valid_and_between_bound_and_sum(place, drawn):
    offsets = place(drawn)
    verify_offsets(drawn, offsets)
    padded = (drawn.size_bytes + drawn.alignment - 1).sum()
    assert lower_bound(drawn) <= peak_of(drawn, offsets) <= padded
    assert (offsets[drawn.size_bytes == 0] == 0).all()


@pytest.mark.parametrize("place", PLACEMENTS.values(), ids=PLACEMENTS)
@given(drawn=problems(alignments=(1,)), factor=st.sampled_from([3, 1024]))
def test_scaled_sizes_scale_the_peak(place, drawn, factor):
    scaled = problem(
        *((size * factor, start, stop, 1) for size, start, stop, _ in drawn.columns().T)
    )
    assert peak_of(scaled, place(scaled)) == factor * peak_of(drawn, place(drawn))


@pytest.mark.parametrize("place", [first_fit, lowest_first], ids=["first_fit", "lowest_first"])
@given(drawn=problems(), data=st.data())
def test_any_order_is_valid(place, drawn, data):
    shuffled = data.draw(st.permutations(range(drawn.count)))
    verify_offsets(drawn, place(drawn, order_of(*shuffled)))


@pytest.mark.parametrize("bad", [(0, 1), (0, 1, 3), (0, 1, -1)])
def test_an_order_of_other_buffers_is_refused(bad):
    made = problem((1, 0, 1, 1), (1, 0, 1, 1), (1, 0, 1, 1))
    with pytest.raises((ValueError, IndexError)):
        first_fit(made, order_of(*bad))


def test_first_fit_takes_the_lowest_gap_and_greedy_by_size_the_tightest():
    # In step 5, bytes [0, 100) are free below the second buffer and [190, 274) above it.
    made = problem(
        (100, 0, 1, 1), (90, 0, 9, 1), (85, 3, 4, 1), (84, 3, 4, 1), (80, 3, 9, 1), (79, 5, 6, 1)
    )
    assert first_fit(made, order.by_size(made)).tolist() == [0, 100, 0, 190, 274, 0]
    assert greedy_by_size(made).tolist() == [0, 100, 0, 190, 274, 190]


def test_best_fit_takes_the_tightest_freed_range():
    # [0, 30) and [40, 52) are free when 12 bytes are asked for.
    made = problem(
        (30, 0, 1, 1), (10, 0, 9, 1), (12, 0, 1, 1), (10, 0, 9, 1), (12, 1, 2, 1), (20, 1, 2, 1)
    )
    assert best_fit(made).tolist() == [0, 30, 40, 52, 40, 0]


def test_best_fit_uses_what_was_freed_at_the_top():
    # [0, 30) and [40, 52) are free below the high-water mark of 52.
    made = problem((30, 0, 1, 1), (10, 0, 9, 1), (12, 0, 1, 1), (12, 1, 2, 1))
    assert best_fit(made).tolist() == [0, 30, 40, 40]


def test_best_fit_coalesces_freed_neighbours():
    made = problem((10, 0, 1, 1), (10, 0, 1, 1), (10, 0, 9, 1), (20, 1, 2, 1))
    assert best_fit(made).tolist() == [0, 10, 20, 0]


def test_best_fit_knows_nothing_of_the_future():
    made = problem((10, 0, 1, 1), (10, 0, 9, 1), (30, 2, 9, 1))
    assert peak_of(made, best_fit(made)) == 50
    assert peak_of(made, greedy_by_size(made)) == 40


def test_a_shared_object_grows_to_its_largest_tenant():
    made = problem((10, 0, 1, 1), (20, 1, 2, 1), (5, 2, 3, 1))
    assert shared_objects(made).tolist() == [0, 0, 0]
    assert peak_of(made, shared_objects(made)) == 20


def test_a_shared_object_prefers_the_smallest_that_holds():
    made = problem((40, 0, 1, 1), (12, 0, 1, 1), (11, 0, 1, 1), (12, 1, 2, 1), (13, 1, 2, 1))
    assert shared_objects(made).tolist() == [0, 40, 52, 40, 0]


@pytest.mark.parametrize(("size", "shares"), [(16, True), (17, False)])
def test_blocks_match_within_a_factor(size, shares):
    made = problem((1, 0, 1, 1), (size, 1, 2, 1))
    assert (shared_objects(made).tolist()[1] == 0) is shares
    made = problem((size, 0, 1, 1), (1, 1, 2, 1))
    assert (shared_objects(made).tolist()[1] == 0) is shares


def test_lowest_first_takes_the_lowest_and_then_the_order():
    # After 0 the third lies on the floor beside it, then the second on the lower of the two.
    made = problem((10, 0, 2, 1), (10, 1, 4, 1), (4, 2, 4, 1), (4, 4, 5, 1))
    assert lowest_first(made, order_of(0, 1, 2, 3)).tolist() == [0, 10, 0, 0]
    assert lowest_first(made, order_of(1, 0, 2, 3)).tolist() == [10, 0, 10, 0]


@given(drawn=problems(count_max=24, alignments=(1,)), data=st.data())
def test_lowest_first_is_what_looking_at_all_again_and_again_gives(drawn, data):
    taken = data.draw(st.permutations(range(drawn.count)))
    size, start, stop, _ = drawn.columns().tolist()
    waiting = [buffer for buffer in taken if size[buffer]]
    floor = dict.fromkeys(waiting, 0)
    expected = [0] * drawn.count
    while waiting:
        lowest = min(waiting, key=floor.__getitem__)
        waiting.remove(lowest)
        expected[lowest] = floor[lowest]
        for other in waiting:
            if start[other] < stop[lowest] and start[lowest] < stop[other]:
                floor[other] = max(floor[other], floor[lowest] + size[lowest])
    assert lowest_first(drawn, order_of(*taken)).tolist() == expected


@given(drawn=problems(count_max=16), rounds=st.integers(1, 6))
def test_promotion_is_never_worse_than_its_first_round(drawn, rounds):
    start = order.by_size(drawn)
    bound = lower_bound(drawn)
    promoted = promote(drawn, start, bound, rounds)
    verify_offsets(drawn, promoted)
    assert peak_of(drawn, promoted) <= peak_of(drawn, lowest_first(drawn, start))


def test_promotion_moves_what_stuck_out():
    made = problem((6, 0, 2, 1), (4, 0, 1, 1), (5, 1, 3, 1), (6, 2, 4, 1), (5, 3, 5, 1))
    bad = order_of(1, 3, 0, 2, 4)
    assert peak_of(made, lowest_first(made, bad)) > lower_bound(made)
    assert peak_of(made, promote(made, bad, lower_bound(made), 20)) == lower_bound(made)
