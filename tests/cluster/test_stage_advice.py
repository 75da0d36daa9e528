"""Fewest stages that a refusal names, over nodes as plain data."""

import pytest

import tightship
from tests.zoo import light
from tightship import cluster
from tightship.cluster.nodes import Node
from tightship.cluster.stage_actor import CHANNEL_BYTES
from tightship.cluster.stage_advice import stages_of
from tightship.errors import CapacityError

MIB = 1 << 20
WORKER = 50 * MIB


def node(memory_mib, count=1, cpus=8.0):
    size = memory_mib * MIB + WORKER + CHANNEL_BYTES
    return Node("n", size, 0, cpus, cpus, count)


def test_the_fewest_stages_are_those_of_a_split():
    path = light.path_of("resnet50")
    found = stages_of(path, None, 1)
    assert found([node(110), node(90)], WORKER) == 2
    assert len(cluster.split(path, ["110MiB", "90MiB"]).stages) == 2
    assert found([node(1000), node(90)], WORKER) == 1
    assert found([node(110)], WORKER) is None
    with pytest.raises(CapacityError):
        cluster.split(path, ["110MiB"])
    fewest = found([node(70, count=9)], WORKER)
    assert len(cluster.split(path, ["70MiB"] * fewest).stages) == fewest
    with pytest.raises(CapacityError):
        cluster.split(path, ["50MiB"] * (fewest - 1))
    assert found([node(50, count=9, cpus=0.0)], WORKER) is None
    assert found([], WORKER) is None


def test_no_stages_of_large_and_prepared_models_are_looked_for(tmp_path):
    assert stages_of(light.path_of("densenet121"), None, 1)([node(1000)], WORKER) is None
    path = tmp_path / "model.tship"
    tightship.prepare(light.path_of("squeezenet"), path)
    assert stages_of(path, None, 1)([node(1000)], WORKER) is None
