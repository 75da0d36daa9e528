import numpy as np
import pytest
from hypothesis import given

from tests.planner.problems import problem, problems
from tightship.planner.placements import order
from tightship.planner.problem import Problem

ORDERS = [value for name, value in vars(order).items() if name.startswith("by_")]


@pytest.mark.parametrize("order_of", ORDERS, ids=lambda order_of: order_of.__name__)
@given(drawn=problems())
def test_an_order_is_a_permutation(order_of, drawn):
    assert sorted(order_of(drawn).tolist()) == list(range(drawn.count))


@pytest.mark.parametrize(
    ("order_of", "expected"),
    [
        (order.by_size, [2, 0, 1]),
        (order.by_lifetime, [1, 0, 2]),
        (order.by_area, [0, 1, 2]),
        (order.by_start, [1, 0, 2]),
        (order.by_stop, [1, 0, 2]),
        (order.by_size_and_lifetime, [0, 2, 1]),
    ],
)
def test_the_first_is_the_largest_by_its_key(order_of, expected):
    made = problem((10, 1, 5, 1), (2, 0, 9, 1), (11, 2, 3, 1))
    assert order_of(made).tolist() == expected


def test_the_reach_counts_the_nearer_end_and_roughness_forgives_a_thousandth():
    made = problem((5000, 0, 6, 1), (5000, 4, 9, 1), (10011, 9, 40, 1), (19, 3, 8, 1))
    assert order.by_load(made).tolist() == [0, 1, 3, 2]
    assert order.by_load_and_reach(made).tolist() == [0, 3, 1, 2]
    assert order.by_rough_load(made).tolist() == [2, 0, 1, 3]


def test_the_largest_part_goes_before_or_after_the_load_and_equal_sizes_are_not_parted():
    made = problem((2, 0, 1, 1), (9, 8, 9, 1), (4, 0, 5, 1), (4, 0, 2, 1), (1, 3, 4, 1))
    assert order.by_share_and_load(made).tolist() == [1, 2, 3, 0, 4]
    assert order.by_load_and_share(made).tolist() == [2, 3, 0, 1, 4]
    assert order.by_share_and_load(made, parts=4).tolist() == [1, 2, 3, 0, 4]


@pytest.mark.parametrize("latest", [2**11 - 1, 2**11, 2**22 - 1, 2**22, 2**33, 2**62])
def test_many_buffers_are_sorted_by_every_digit_of_their_keys(latest):
    rng = np.random.default_rng(11)
    start = np.append(rng.integers(0, latest + 1, 4000), [latest, 0, latest, latest - 1])
    ones = np.ones_like(start)
    by_start = order.by_start(Problem(ones, start, start + ones, ones))
    assert by_start.tolist() == np.argsort(start, kind="stable").tolist()


@given(problems())
def test_the_load_of_a_buffer_is_the_largest_of_its_steps(drawn):
    loads = drawn.live_bytes(20)
    expected = [
        -loads[start:stop].max() for _, start, stop, _ in zip(*drawn.columns(), strict=True)
    ]
    by_load = order.by_load(drawn).tolist()
    assert [expected[index] for index in by_load] == sorted(expected)
