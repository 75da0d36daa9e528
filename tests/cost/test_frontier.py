"""Frontiers of graphs: no plan is beaten in bytes and operations, and the chosen one is on it."""

from itertools import pairwise

from tests.cost.test_squeeze import fed
from tests.zoo.net import Net
from tightship.cost.frontier import (
    frontier_json,
    frontier_of,
    frontier_picture,
    frontier_report,
)
from tightship.cost.squeeze import GraphSqueezing
from tightship.frontend.onnx import read_bytes
from tightship.graph.backward import Sgd
from tightship.planner import verify


def products(count, width=64, *, residual=False):
    """A chain of products and Tanh, each value as large as the others."""
    net = Net()
    x = net.normal("x", width, width)
    for _ in range(count):
        y = net("Tanh", net("MatMul", x, net.weight(width, width)))
        x = net("Add", x, y) if residual else y
    net.output(x)
    return net.case()


def test_plans_take_less_and_add_more_down_to_a_few_values():
    graph, _ = fed(products(16), Sgd())
    found = frontier_of(GraphSqueezing(graph), "training")
    peaks = [each.squeezed.plan.plan.peak_bytes for each in found.points]
    added = [each.squeezed.added_operations for each in found.points]
    for each in found.points:
        verify(each.squeezed.plan.plan)
    assert all(more > less for more, less in pairwise(peaks))
    assert all(less < more for less, more in pairwise(added))
    assert added[0] == 0
    assert peaks[-1] <= 6 * 64 * 64 * 4
    assert len(peaks) > 10


def test_the_chosen_plan_is_the_cheapest_within_the_budget():
    graph, _ = fed(products(10), Sgd())
    squeezing = GraphSqueezing(graph)
    found = frontier_of(squeezing, "training", "40%")
    limit = found.chosen.budget_bytes
    fitting = [p for p in found.points if p.squeezed.plan.plan.peak_bytes <= limit]
    assert found.chosen is fitting[0]
    values = frontier_json(found)
    assert [each["chosen"] for each in values["points"]].count(True) == 1
    assert values["status"] == "feasible"
    report = frontier_report(found)
    assert "* the cheapest plan within" in report
    assert max(map(len, report.splitlines())) <= 100
    picture = frontier_picture(found, "net")
    assert [p.is_chosen for p in picture.points].count(True) == 1
    assert "MatMul" in picture.points[-1].again


def test_a_budget_below_the_bound_is_said_to_be_out_of_reach():
    graph, _ = fed(products(4), Sgd())
    found = frontier_of(GraphSqueezing(graph), "training", "100B")
    assert frontier_json(found)["status"] == "infeasible"
    assert "cannot be reached" in frontier_report(found)


def test_inference_has_a_frontier_where_values_are_read_late():
    net = Net()
    x = net.normal("x", 64, 64)
    found = [net("Tanh", net("MatMul", x, net.weight(64, 64)))]
    for _ in range(11):
        found.append(net("Tanh", net("MatMul", found[-1], net.weight(64, 64))))
    y = found.pop()
    for skipped in reversed(found):
        y = net("Sigmoid", net("Mul", net("Sigmoid", net("Add", y, skipped)), y))
    net.output(y)
    frontier = frontier_of(GraphSqueezing(read_bytes(net.case().model)), "inference")
    assert frontier.points[0].squeezed.added_operations == 0
    assert len(frontier.points) > 4
    assert (
        2 * frontier.points[-1].squeezed.plan.plan.peak_bytes
        < frontier.points[0].squeezed.plan.plan.peak_bytes
    )


def test_sums_along_residual_layers_run_again_while_their_terms_are_kept():
    graph, _ = fed(products(32, residual=True), Sgd())
    squeezing = GraphSqueezing(graph)
    found = squeezing.within("60%").squeezed
    assert found.plan.plan.peak_bytes <= 0.6 * squeezing.eager_bytes
    assert found.added_operations < 0.02 * found.operations
