"""The network as JSON values."""

import json

from tests.view.network import networks
from tightship.view.network.as_json import network_json
from tightship.view.network.levels import levels_of
from tightship.view.network.network import network_of


def values_of(picture):
    network = network_of(picture)
    return json.loads(json.dumps(network_json(network, levels_of(network))))


def test_nodes_values_and_states_are_told_by_name():
    values = values_of(networks.in_place())
    assert [node["operator"] for node in values["nodes"]] == ["Conv", "Relu", "Gemm", "input"]
    assert values["nodes"][1] == {
        "node": 1, "step": 1, "name": "relu", "operator": "Relu", "reads": ["c"], "writes": ["r"],
        "scratch_bytes": 0,
    }  # fmt: skip
    assert values["edges"][1] == {"from": 0, "to": 1, "value": "c"}
    found = {value["name"]: value for value in values["values"]}
    assert (found["r"]["offset_bytes"], found["r"]["shares_with"]) == (0, "c")
    assert found["y"]["offset_bytes"] is None
    step = values["steps"][1]
    assert step["counters"] == {"c": 0, "r": 1}
    assert step["released"] == ["c"]
    assert step["free"] == [{"offset_bytes": 64, "size_bytes": 32, "last": ["conv.scratch"]}]


def test_blocks_are_listed_with_their_steps():
    blocks = values_of(networks.layers(12, 50))["blocks"]
    assert blocks[0] == {"name": "/h.0/attn", "within": "", "steps": list(range(25))}
