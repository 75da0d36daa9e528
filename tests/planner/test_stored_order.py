"""Orders decoded for sizes other than those they come from."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.problems import problem, problems
from tests.zoo.open_lengths import text
from tightship.cost.schedule import schedule_of
from tightship.errors import PlanError
from tightship.frontend.onnx import open_bytes
from tightship.planner import place, place_schedule, verify
from tightship.planner.placements.in_one_order import stacked
from tightship.planner.stored_order import StoredOrders, order_of, stored_orders


def stacked_by_hand(made, order):
    """Every buffer above the tops of those before it that it meets."""
    offsets = {}
    for index in order:
        size, start, stop, alignment = made.columns()[:, index].tolist()
        below = [
            offsets[other] + made.size_bytes[other]
            for other in offsets
            if made.start_step[other] < stop and start < made.stop_step[other]
        ]
        lowest = max(below, default=0)
        if size:
            offsets[index] = -(-lowest // alignment) * alignment
    return [offsets.get(index, 0) for index in range(made.count)]


def scores(length):
    """A buffer that grows with a length, one with its square, and two that bridge them."""
    return problem((length**2, 0, 2, 1), (64 * length, 1, 4, 1), (16, 0, 3, 1), (99, 3, 5, 1))


def graph_problem(length):
    schedule = schedule_of(open_bytes(text(context=257)).graph({"ids": (1, length)})).schedule
    return place_schedule(schedule).plan.problem


@given(drawn=problems(), data=st.data())
def test_stacking_puts_each_buffer_on_those_before_it(drawn, data):
    order = data.draw(st.permutations(range(drawn.count)))
    found = stacked(drawn, np.array(order, np.int64))
    assert found.tolist() == stacked_by_hand(drawn, order)


@given(drawn=problems(count_max=20))
def test_an_order_decodes_its_own_plan_to_no_more(drawn):
    plan = place(drawn)
    decoded = StoredOrders((order_of(plan),)).decode(drawn)
    assert decoded.peak_bytes <= plan.peak_bytes
    assert (decoded.offset_bytes <= plan.offset_bytes).all()


@given(drawn=problems(), data=st.data())
def test_an_order_is_valid_for_any_sizes_and_lifetimes(drawn, data):
    other = data.draw(problems(drawn.count, count_min=drawn.count))
    decoded = StoredOrders((order_of(place(drawn)),)).decode(other)
    verify(decoded)
    assert decoded.lower_bound_bytes <= decoded.peak_bytes


@pytest.mark.parametrize("limit", [0, 10**9])
def test_a_decoded_plan_says_whether_it_fits(limit):
    made = replace(scores(100), capacity_bytes=limit)
    plan = stored_orders([scores(10)]).decode(made)
    assert plan.status == ("optimal" if limit else "infeasible")


def test_one_order_serves_sizes_in_proportion():
    sizes = [problem(*((size * k, a, b, 1) for size, a, b in ((5, 0, 2), (3, 1, 3), (8, 2, 4))))
             for k in range(1, 9)]  # fmt: skip
    assert len(stored_orders(sizes).orders) == 1


def test_orders_of_some_lengths_serve_those_between():
    lengths = range(8, 257)
    stored = stored_orders(graph_problem(length) for length in lengths[::31])
    for length in lengths[::13]:
        made = graph_problem(length)
        assert stored.decode(made).peak_bytes <= 1.01 * place(made).peak_bytes


def test_buffers_with_names_are_found_by_them_and_new_ones_lie_on_top():
    first = problem((4, 0, 2, 1), (2, 0, 2, 1), (1, 0, 2, 1), names=("a", "b", "c"))
    stored = StoredOrders((np.array([2, 0, 1]),), ("a", "b", "c"))
    assert stored.decode(first).offset_bytes.tolist() == [1, 5, 0]
    other = problem((2, 0, 2, 1), (7, 0, 2, 1), (1, 0, 2, 1), names=("b", "new", "c"))
    assert stored.decode(other).offset_bytes.tolist() == [1, 3, 0]


def test_other_buffers_are_refused():
    stored = stored_orders([scores(10)])
    with pytest.raises(PlanError, match="order has 4 buffers; the problem has 1"):
        stored.decode(problem((1, 0, 1, 1)))
    with pytest.raises(PlanError, match="different names"):
        stored_orders([scores(10), replace(scores(20), names=("a", "b", "c", "d"))])
    with pytest.raises(PlanError, match="No problem"):
        stored_orders([])
