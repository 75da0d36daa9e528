"""Nodes, values and edges of a picture."""

from dataclasses import replace

from tests.view import plans
from tests.view.network import networks
from tightship.view.network.network import OUTSIDE, has_network, network_of
from tightship.view.picture import Rectangle, Step


def test_inputs_are_nodes_after_the_steps_and_values_join_what_writes_and_reads_them():
    network = network_of(networks.in_place())
    assert network.node_count == 4
    assert [network.values[network.main_value(node)].name for node in range(4)] == [
        "c", "r", "y", "x",
    ]  # fmt: skip
    named = [(a, b, network.values[value].name) for a, b, value in network.edges]
    assert named == [(3, 0, "x"), (0, 1, "c"), (1, 2, "r")]
    assert [network.values[v].name for v in network.reads[1]] == ["c"]


def test_a_value_knows_its_bytes_and_whose_they_were():
    values = {value.name: value for value in network_of(networks.in_place()).values}
    assert (values["r"].offset_bytes, values["r"].size_bytes) == (0, 64)
    assert values["r"].shares_with == "c"
    assert (values["r"].makers, values["r"].readers) == ((1,), (2,))
    assert values["conv.scratch"].kind == "scratch"
    assert (values["y"].kind, values["y"].offset_bytes) == ("output", OUTSIDE)
    assert not values["x"].is_planned


def test_parts_of_one_value_are_all_read_and_a_second_value_of_a_name_is_another():
    steps = [
        Step("a", "Conv", "", 0, None, (), ("whole",)),
        Step("b", "Conv", "", 0, None, (), ("whole",)),
        Step("c", "Relu", "", 0, None, ("whole",), ("y",)),
        Step("d", "Conv", "", 0, None, (), ("whole",)),
        Step("e", "Relu", "", 0, None, ("whole",), ("z",)),
    ]
    rectangles = [Rectangle("whole", 64, 0, 0, 3), Rectangle("whole", 64, 64, 3, 5)]
    network = network_of(plans.picture(rectangles, steps))
    wholes = [value for value in network.values if value.name == "whole"]
    assert [value.makers for value in wholes] == [(0, 1), (3,)]
    assert [(a, b) for a, b, _ in network.edges] == [(0, 2), (1, 2), (3, 4)]


def test_a_view_has_the_bytes_that_it_shows():
    steps = [
        Step("a", "Conv", "", 0, None, (), ("c",)),
        Step("b", "Reshape", "", 0, None, ("c",), ("flat",)),
        Step("c", "Gemm", "", 0, None, ("flat",), ("y",)),
    ]
    made = plans.picture([Rectangle("c", 64, 128, 0, 3)], steps)
    values = {v.name: v for v in network_of(replace(made, views={"flat": "c"})).values}
    assert (values["flat"].offset_bytes, values["flat"].shares_with) == (128, "c")


def test_weights_that_are_updated_are_not_nodes():
    steps = [Step("a", "Sgd", "", 0, None, ("w", "d(w)"), ("w.next",))]
    network = network_of(plans.picture([], steps))
    assert network.node_count == 1
    assert network.edges == ()


def test_a_plan_of_buffers_has_no_network():
    assert not has_network(plans.cnn())
    assert has_network(networks.perceptron())
