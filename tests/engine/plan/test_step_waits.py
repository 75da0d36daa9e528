"""Waits between the steps of a program, with a plan and without."""

import pytest

from tests.engine.graphs import graph_of, lowered
from tests.models import filled
from tightship.engine.plan.step_waits import needed, waits_of
from tightship.engine.plan.worker_placement import place_for_workers
from tightship.planner.parallel.dependencies import step_order

PARTS = """net (float[1, 8, 12, 12] x) => (float[1, 48, 12, 12] y) {
    a = Conv <pads = [1, 1, 1, 1]> (x, w)
    b = Conv <pads = [1, 1, 1, 1]> (x, v)
    c = Conv <pads = [1, 1, 1, 1]> (x, u)
    d = Concat <axis = 1> (a, b, c)
    e = Sin (d)
    y = Cos (e)
}"""


@pytest.fixture
def program():
    weights = {name: filled(16, 8, 3, 3) + k for k, name in enumerate("wvu")}
    return lowered(graph_of(PARTS, **weights), ())


def order_of(program, waits):
    placed = place_for_workers(program, 2)
    return step_order(placed.schedule_plan.schedule, sorted(waits))


def test_a_reader_waits_for_every_part_and_parts_for_none(program):
    order = order_of(program, waits_of(program, None))
    convolutions = [i for i, step in enumerate(program.steps) if "Conv" in step.operator]
    reader = next(i for i, step in enumerate(program.steps) if "Sin" in step.operator)
    assert len(convolutions) == 3
    assert all(order.before(index, reader) for index in convolutions)
    assert not any(order.before(a, b) for a in convolutions for b in convolutions)


def test_a_plan_only_adds_to_what_values_need(program):
    placed = place_for_workers(program, 2)
    order = order_of(program, needed(placed))
    assert all(order.before(*edge) for edge in waits_of(program, None))
    assert set(placed.concurrency.edges) <= set(needed(placed))


def test_steps_in_python_wait_for_all_before_and_all_wait_for_them():
    weights = {name: filled(16, 8, 3, 3) for name in "wvu"}
    program = lowered(graph_of(PARTS, **weights), ("onednn", "native"))
    count = len(program.steps)
    assert waits_of(program, None) == [(step, step + 1) for step in range(count - 1)]
