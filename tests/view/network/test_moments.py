"""Counters of pending readers, and boxes of free memory, as in the memory note."""

from tests.view.network import networks
from tightship.view.network.moments import FreeBox, moment_at, moments, pending
from tightship.view.network.network import network_of


def names(network, values):
    return [network.values[value].name for value in values]


def test_a_counter_falls_with_each_reader_and_bytes_are_released_at_zero():
    network = network_of(networks.perceptron())
    first = moment_at(network, 1)
    counters = {network.values[v].name: count for v, count in first.counters.items()}
    assert counters == {"fc1": 0, "act1": 3}
    assert names(network, first.released) == ["fc1"]
    act1 = next(value for value in network.values if value.name == "act1")
    assert [pending(act1, step) for step in range(1, 7)] == [3, 2, 2, 2, 1, 0]


def test_released_memory_waits_in_a_box_until_a_value_takes_it():
    network = network_of(networks.perceptron())
    found = {moment.step: moment.free for moment in moments(network)}
    assert found[1] == ()
    assert found[2] == ()  # fc2 lies where fc1 lay
    offsets = {value.name: value.offset_bytes for value in network.values}
    assert offsets["fc2"] == offsets["fc1"]
    last = found[7][0]
    assert last.last[0] in {"act1", "d(act1)"}


def test_scratch_is_live_in_its_step_only():
    network = network_of(networks.in_place())
    assert "conv.scratch" in names(network, moment_at(network, 0).live)
    later = moment_at(network, 1)
    assert sorted(names(network, later.live)) == ["c", "r"]
    assert later.free == (FreeBox(64, 32, ("conv.scratch",)),)


def test_live_and_free_bytes_never_meet():
    network = network_of(networks.layers(3, 12))
    for moment in moments(network):
        for box in moment.free:
            for value in map(network.values.__getitem__, moment.live):
                assert (
                    box.offset_bytes + box.size_bytes <= value.offset_bytes
                    or value.end_bytes <= box.offset_bytes
                )
