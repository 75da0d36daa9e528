"""Levels: the whole, and what is in each block."""

from tests.view.network import networks
from tightship.view.network.levels import levels_of
from tightship.view.network.network import network_of


def test_a_small_network_is_one_level_of_nodes():
    network = network_of(networks.perceptron())
    (level,) = levels_of(network)
    assert [box.node for box in level.boxes] == list(range(network.node_count))
    assert [box.label for box in level.boxes][-1] == "A"
    assert len(level.edges) == len({(a, b) for a, b, _ in network.edges})


def test_a_large_network_is_blocks_and_each_has_a_level_with_what_enters_and_leaves():
    network = network_of(networks.layers(12, 50))
    levels = levels_of(network)
    blocks = [box for box in levels[0].boxes if box.level >= 0]
    assert len(blocks) == 24
    assert sum(len(box.steps) for box in blocks) == 600
    inner = levels[blocks[1].level]
    assert [box.node for box in inner.boxes if not box.is_port] == list(blocks[1].steps)
    ports = [box for box in inner.boxes if box.is_port]
    names = [network.values[value].name for port in ports for value in port.values]
    assert names[0] == "/h.0/attn/op_24_output"
    assert "x" in names


def test_blocks_have_blocks_where_they_are_large():
    levels = levels_of(network_of(networks.layers(30, 200)))
    outer = [box for box in levels[0].boxes if box.level >= 0]
    assert len(outer) == 30
    inner = [box.label for box in levels[outer[0].level].boxes if box.level >= 0]
    assert inner == ["/h.0/attn", "/h.0/mlp"]


def test_blocks_are_drawn_from_the_number_of_nodes_that_is_given():
    network = network_of(networks.layers(2, 12))
    assert len(levels_of(network)) == 1
    assert len(levels_of(network, nodes_max=20)) == 5
