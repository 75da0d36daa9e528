"""Bookings against what processes of a real Ray take."""

import numpy as np
import pytest

from tests.zoo import light
from tightship import cluster
from tightship.errors import InputError
from tightship.loading import load
from tightship.loading.preparing import prepare

NEAR_RATIO = 1.15
REPLICAS = 4
WAIT_S = 240


@pytest.fixture
def prepared(tmp_path):
    path = tmp_path / "model.tship"
    prepare(light.path_of("resnet50"), path)
    return path


def taken_by_replicas(path, needs, options, feeds, count=REPLICAS):
    """Sum of the PSS of replicas that have run, in bytes."""
    import ray

    from tightship.cluster.replica import Replica

    actor = ray.remote(Replica).options(**options)
    found = [actor.remote(str(path), needs) for _ in range(count)]
    try:
        for _ in range(3):
            ray.get([replica.run.remote(feeds) for replica in found], timeout=WAIT_S)
        return sum(status["pss_bytes"] for status in ray.get([r.status.remote() for r in found]))
    finally:
        for replica in found:
            ray.kill(replica)


def test_four_replicas_take_what_is_booked_and_little_less(shared_cluster, prepared):
    needs = cluster.requirements(prepared)
    options = cluster.actor_options(needs, node=shared_cluster.nodes[0].node_id)
    with load(prepared) as model:
        (name,) = model.input_names
    taken = taken_by_replicas(prepared, needs, options, {name: np.zeros(light.SHAPE, np.float32)})
    booked = REPLICAS * options["memory"] + needs.node_bytes
    assert taken <= booked <= NEAR_RATIO * taken


def test_replicas_that_share_nothing_are_booked_too(shared_cluster):
    path = light.path_of("resnet50")
    needs = cluster.requirements(path, share=False)
    options = cluster.actor_options(needs, node=shared_cluster.nodes[0].node_id)
    with load(path) as model:
        (name,) = model.input_names
    feeds = {name: np.zeros(light.SHAPE, np.float32)}
    assert taken_by_replicas(path, needs, options, feeds, 2) <= 2 * options["memory"]


@pytest.mark.usefixtures("shared_cluster")
def test_a_worker_is_measured_on_each_node():
    import ray

    found = cluster.worker_bytes()
    assert set(found.by_node) == {node["NodeID"] for node in ray.nodes() if node["Alive"]}
    assert all(20 << 20 < size < 200 << 20 for size in found.by_node.values())
    assert found.on(None) == max(found.by_node.values())
    needs = cluster.requirements(light.path_of("squeezenet"))
    options = cluster.actor_options(needs)
    assert options == {"memory": found.on(None) + needs.replica_bytes, "num_cpus": 1}


@pytest.mark.usefixtures("shared_cluster")
def test_an_unknown_node_is_named():
    with pytest.raises(InputError, match=r"Node `none` is not alive; \d nodes are"):
        cluster.worker_bytes(["none"])
