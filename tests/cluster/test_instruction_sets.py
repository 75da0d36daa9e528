"""Nodes of one cluster whose processors have different instructions."""

import numpy as np
import pytest

import tightship
from tests.cluster.serve_clients import until
from tests.cluster.test_losses import alive
from tests.processor import HAS_AVX512
from tests.zoo import light
from tightship import cluster
from tightship.errors import InputError

CPUS, MANY = 8, 16
OLDER = "AVX2" if HAS_AVX512 else "SSE41"


@pytest.fixture(scope="module")
def older(shared_cluster):
    """A node with fewer instructions, and with more processors than the others."""
    added = shared_cluster.add(400, MANY, ONEDNN_MAX_CPU_ISA=OLDER)
    until(lambda: added.node_id in {node.node_id for node in alive()})
    yield added
    shared_cluster.kill(added)
    until(lambda: added.node_id not in {node.node_id for node in alive()})


def test_each_node_prepares_for_its_own_processor(shared_cluster, older):
    import ray

    path = light.path_of("squeezenet")
    image = np.random.default_rng(0).standard_normal(light.SHAPE, np.float32)
    with tightship.load(path, threads=CPUS) as model:
        (name,) = model.input_names
        expected = model.run({name: image})
    with (
        shared_cluster.leaving(300, 250) as same,
        cluster.replicas(path, threads=CPUS) as group,
    ):
        located = ray.get([anchor.located.remote() for anchor in group.anchors])
        files = ray.get([anchor.file.remote(group.source) for anchor in group.anchors])
        facts = {node: file.facts for (node, _), file in zip(located, files, strict=True)}
        assert facts.keys() == {older.node_id, *same}
        own = facts.pop(older.node_id)
        assert len(set(facts.values())) == 1
        assert own not in facts.values()
        for result in ray.get([actor.run.remote({name: image}) for actor in group.actors]):
            for key, array in expected.items():
                np.testing.assert_allclose(result[key], array, rtol=1e-3, atol=1e-4)


def test_a_stage_for_another_processor_is_refused_by_name(older):
    stages = cluster.split(light.path_of("squeezenet"), ["1GiB"], threads=CPUS + 1).stages
    with pytest.raises(InputError, match=r"squeezenet.*has other steps than the one that"):
        cluster.pipeline(stages)  # the older node alone has so many processors
    assert older.node_id in {node.node_id for node in alive()}
    until(lambda: all(node.free_bytes == node.memory_bytes for node in alive()))
