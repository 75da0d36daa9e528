"""Forms of a drawn network."""

from tests.view.network import networks
from tightship.view.network.drawing import network_text, network_values


def test_the_form_is_that_of_the_suffix():
    assert network_text(networks.perceptron(), ".html").startswith("<!doctype html>")
    assert network_text(networks.perceptron(), ".svg", 3).startswith("<svg ")
    assert network_values(networks.perceptron())["model"] == "perceptron"
