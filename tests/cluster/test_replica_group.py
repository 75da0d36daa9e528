"""Replicas on a real Ray: what they compute, take, and survive."""

import time

import numpy as np
import pytest

import tightship
from tests.cluster.overruns import end_process, start_threads, too_much
from tests.cluster.serve_clients import until
from tests.zoo import light
from tightship import cluster
from tightship.errors import CapacityError, InputError, OutOfMemoryError

MIB = 1 << 20


@pytest.fixture(scope="module")
def image():
    return np.random.default_rng(0).standard_normal(light.SHAPE, np.float32)


@pytest.fixture(scope="module")
def expected(image):
    with tightship.load(light.path_of("squeezenet")) as model:
        return model.run({model.input_names[0]: image})


@pytest.fixture(scope="module")
def group(shared_cluster):
    """Replicas that each test leaves alive; the last one closes them."""
    assert shared_cluster.nodes
    with cluster.replicas(light.path_of("squeezenet"), 2) as found:
        yield found


def check(group, image, expected, runs=4):
    with tightship.load(light.path_of("squeezenet")) as model:
        (name,) = model.input_names
    for _ in range(runs):
        results = group.run({name: image})
        assert all(np.array_equal(results[key], expected[key]) for key in expected)


def nodes_now(shared_cluster):
    from tightship.cluster.ray_state import alive_nodes

    assert shared_cluster.nodes
    time.sleep(1)  # the head hears of bookings some moments later
    return alive_nodes()


def is_free(shared_cluster):
    return all(n.free_bytes == n.memory_bytes for n in nodes_now(shared_cluster))


def test_what_no_node_holds_is_refused(shared_cluster):
    before = nodes_now(shared_cluster)
    with pytest.raises(CapacityError, match=r"1 replica\(s\) do not fit; the nodes hold at most 0"):
        cluster.replicas(light.path_of("squeezenet"), 1, threads=9)
    with pytest.raises(CapacityError, match="500 replica"):
        cluster.replicas(light.path_of("squeezenet"), 500)
    with pytest.raises(InputError, match="`count` is `many`"):
        cluster.replicas(light.path_of("squeezenet"), "many")
    assert nodes_now(shared_cluster) == before


def test_a_closed_group_says_so_and_books_nothing(shared_cluster, image):
    group = cluster.replicas(light.path_of("squeezenet"), 1, share=False)
    status = cluster.status()
    assert sorted(each["kind"] for node in status for each in node["processes"]) == [
        "anchor",
        "replica",
    ]
    assert all(booked_weights(anchor) == [] for anchor in group.anchors)
    group.close()
    group.close()
    with pytest.raises(InputError, match="are closed; start others"):
        group.run({"x": image})
    until(lambda: is_free(shared_cluster))


def test_auto_fills_the_memory_of_each_node(shared_cluster):
    import ray

    with shared_cluster.leaving(350, 280):
        before = nodes_now(shared_cluster)
        with cluster.replicas(light.path_of("resnet50")) as group:
            needs, worker = group.requirements, cluster.worker_bytes()
            most = max(worker.by_node.values()) + needs.replica_bytes
            after = nodes_now(shared_cluster)
            assert (
                max(node.free_bytes for node in after) < most + worker.on(None) + needs.node_bytes
            )
            status = group.status() + [ray.get(each.status.remote()) for each in group.anchors]
            booked = sum(node.free_bytes for node in before) - sum(n.free_bytes for n in after)
            taken = sum(each["pss_bytes"] for each in status)
            assert len(group.anchors) == 2
            assert taken <= booked
    until(lambda: is_free(shared_cluster))


def test_replicas_compute_what_the_model_computes(group, image, expected):
    check(group, image, expected)
    status = group.status()
    assert len({each["pid"] for each in status}) == 2
    needs = group.requirements
    for each in status:
        assert each["data_limit_bytes"] - each["data_before_bytes"] <= needs.data_bytes
        assert each["data_bytes"] <= each["data_limit_bytes"]


def test_an_overrun_is_an_error_of_that_call(group, image, expected):
    import ray

    before = {each["pid"] for each in group.status()}
    with pytest.raises(MemoryError) as raised:
        ray.get(group.actors[0].apply.remote(too_much))
    assert isinstance(raised.value.cause, OutOfMemoryError)
    assert "a function in a replica" in str(raised.value.cause)
    check(group, image, expected)
    assert {each["pid"] for each in group.status()} == before


def test_threads_of_ray_find_room_under_the_limit(group):
    import ray

    assert ray.get(group.actors[0].apply.remote(start_threads, 8)) == 8


def test_a_replica_that_ends_takes_no_other_with_it(group, image, expected):
    import ray

    before = {each["pid"] for each in group.status()}
    nodes = [node for node in ray.nodes() if node["Alive"]]
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(group.actors[0].apply.remote(end_process))
    check(group, image, expected)
    until(lambda: len(group.status()) == 2)
    after = {each["pid"] for each in group.status()}
    assert len(before & after) == 1
    assert len([node for node in ray.nodes() if node["Alive"]]) == len(nodes)
    check(group, image, expected)


def test_an_anchor_that_ends_is_started_again(group, image, expected):
    import os
    import signal

    import ray

    (anchor,) = group.anchors
    pid = ray.get(anchor.status.remote())["pid"]
    os.kill(pid, signal.SIGKILL)
    check(group, image, expected)

    def is_back():
        try:
            return ray.get(anchor.status.remote())["pid"] != pid
        except ray.exceptions.RayActorError:
            return False

    until(is_back)
    assert booked_weights(anchor) == [group.source.key]
    ray.kill(group.actors[0], no_restart=False)  # it asks the new anchor for the file
    until(lambda: len(group.status()) == 2)
    check(group, image, expected)


def test_groups_of_one_model_book_its_weights_once(shared_cluster, group, image, expected):
    before = nodes_now(shared_cluster)
    with cluster.replicas(light.path_of("squeezenet"), 1) as second:
        worker = cluster.worker_bytes()
        after = nodes_now(shared_cluster)
        taken = {
            node.node_id: was.free_bytes - node.free_bytes
            for was, node in zip(before, after, strict=True)
            if was.free_bytes != node.free_bytes
        }
        (name,) = taken
        assert taken[name] == worker.on(name) + second.requirements.replica_bytes
        assert second.anchors[0] == group.anchors[0]
        assert booked_weights(group.anchors[0]) == [group.source.key]
        group.close()
        check(second, image, expected)
        assert booked_weights(second.anchors[0]) == [second.source.key]
        with cluster.replicas(light.path_of("resnet50"), 1) as other:
            assert len(booked_weights(other.anchors[0])) == 2
            anchor = other.anchors[0]
        until(lambda: booked_weights(anchor) == [second.source.key])
    until(lambda: is_free(shared_cluster))


def booked_weights(anchor):
    import ray

    return ray.get(anchor.status.remote())["keys"]
