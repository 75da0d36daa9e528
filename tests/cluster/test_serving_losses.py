"""Losses under a deployment: requests, anchors, nodes, and the process that deployed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.cluster.conftest import SERVE_PORT
from tests.cluster.overruns import too_much
from tests.cluster.serve_clients import (
    anchors,
    asked,
    body_of,
    is_alive,
    is_free,
    nodes,
    pids_of,
    running,
    state,
    until,
)
from tests.zoo import light
from tightship import cluster
from tightship.cluster.booked_nodes import PLACED_S
from tightship.errors import CapacityError

URL = f"http://127.0.0.1:{SERVE_PORT}/m/v2"
INFER = f"{URL}/models/light_squeezenet/infer"
PATH = light.path_of("squeezenet")
NODE_MIB = 400
MIB = 1 << 20
DRIVER = """
import sys
import ray
from ray import serve
from tightship import cluster

ray.init(address=sys.argv[1], log_to_driver=False, logging_level="error")
serve.run(cluster.deployment(sys.argv[2], replicas=1), name="model", route_prefix="/m")
print("running", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def body():
    return body_of("data_0", np.ones(light.SHAPE, np.float32), raw=False)


def measured():
    return [each for node in cluster.status() for each in node["processes"]]


def answers_until(statuses, body, ended):
    while not ended.is_set():
        statuses.append(asked(INFER, *body)[0])


def test_requests_go_on_while_replicas_are_killed(served, body):
    ended, statuses = threading.Event(), []
    with running(served, PATH, replicas=2) as handle, ThreadPoolExecutor(2) as pool:
        pids = pids_of(handle, 2)
        clients = [pool.submit(answers_until, statuses, body, ended) for _ in range(2)]
        time.sleep(1)
        os.kill(min(pids), signal.SIGKILL)
        until(lambda: state(served) == "HEALTHY" and len(pids_of(handle, 2) & pids) == 1)
        time.sleep(1)
        ended.set()
        for each in clients:
            each.result()
        assert statuses.count(200) > 5
        # a request that was in the replica fails with its reason, the others find the neighbour
        assert statuses.count(200) >= len(statuses) - 4
        assert set(statuses) <= {200, 500, 503}
    until(lambda: not anchors())


def test_an_overrun_is_answered_with_its_reason(served, body):
    with running(served, PATH, replicas=1) as handle:
        (pid,) = pids_of(handle, 1)
        controller = served.context._get_global_client()._controller
        for _ in range(3):
            with pytest.raises(MemoryError):
                handle.apply.remote(too_much).result()
        status, answer, _ = asked(INFER, *body)
        assert status == 200, answer  # nothing of the overrun is left
        for _ in range(3):
            with pytest.raises(MemoryError):
                handle.apply.remote(too_much).result()
        until(lambda: not is_alive(pid))  # it counts as unhealthy
        until(lambda: asked(INFER, *body)[0] == 200)
        assert served.context._get_global_client()._controller == controller


def test_anchors_that_are_killed_start_again(served, shared_cluster, body):
    with (
        shared_cluster.leaving(300, 230),
        running(served, PATH),
    ):
        until(lambda: sum(each["kind"] == "anchor" for each in measured()) == 2)
        before = {each["pid"] for each in measured() if each["kind"] == "anchor"}
        replicas = {each["pid"] for each in measured() if each["kind"] == "replica"}
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        assert asked(INFER, *body)[0] == 200  # replicas do not need them

        def all_again():
            found = measured()
            now = {each["pid"] for each in found if each["kind"] == "anchor"}
            known = {each["pid"] for each in found if each["kind"] == "replica"}
            return len(now) == 2 and not now & before and known == replicas

        until(all_again)
    until(lambda: not anchors())


@pytest.mark.slow
def test_a_node_that_ends_leaves_the_others_serving(served, shared_cluster, body):
    count, added = len(nodes()), shared_cluster.add(NODE_MIB)
    until(lambda: len(nodes()) == count + 1)
    with (
        shared_cluster.leaving(300, 0),
        running(served, PATH),
    ):
        until(lambda: sum(each["kind"] == "anchor" for each in measured()) == 2)
        shared_cluster.kill(added)
        until(lambda: len(nodes()) == count)
        until(lambda: asked(INFER, *body)[0] == 200)
        assert all(asked(INFER, *body)[0] == 200 for _ in range(5))
        again = shared_cluster.add(NODE_MIB)  # its replicas come back, with an anchor there
        until(lambda: len(nodes()) == count + 1 and state(served) == "HEALTHY")
        until(lambda: sum(each["kind"] == "anchor" for each in measured()) == 2)
    until(lambda: not anchors())
    shared_cluster.kill(again)
    until(lambda: len(nodes()) == count)


def test_the_end_of_the_process_that_deployed_leaves_the_application(served, shared_cluster, body):
    command = [sys.executable, "-c", DRIVER, shared_cluster.address, str(PATH)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "running" in process.stdout.readline()
        process.kill()
    assert asked(INFER, *body)[0] == 200
    pids = [each["pid"] for each in measured()]
    assert len(pids) >= 2
    served.delete("model")
    until(is_free)
    until(lambda: not any(map(is_alive, pids)))
    until(lambda: not anchors())


@pytest.mark.slow
def test_a_new_version_takes_over_while_requests_go_on(served, body):
    ended, statuses = threading.Event(), []
    with running(served, PATH, replicas=1) as handle, ThreadPoolExecutor(2) as pool:
        (before,) = pids_of(handle, 1)
        clients = [pool.submit(answers_until, statuses, body, ended) for _ in range(2)]
        app = cluster.deployment(PATH, replicas=1, options={"max_ongoing_requests": 3})
        (after,) = pids_of(served.run(app, name="model", route_prefix="/m"), 1)
        until(lambda: not is_alive(before))
        ended.set()
        for each in clients:
            each.result()
        assert after != before
        assert statuses.count(200) > 5
        assert set(statuses) == {200}
        until(lambda: sum(each["kind"] == "keeper" for each in measured()) <= 1)
    until(lambda: not anchors())


@pytest.mark.slow
def test_deployments_of_one_model_book_its_weights_once(served, body):
    with running(served, PATH, replicas=1) as first:
        (pid,) = pids_of(first, 1)
        booked = [node.memory_bytes - node.free_bytes for node in nodes()]
        app = cluster.deployment(PATH, replicas=1)
        served.run(app, name="other", route_prefix="/other")
        own = first.status.remote().result()["booked_bytes"]
        most = sum(booked) + own + 2 * 80 * MIB  # a keeper, and an anchor on the other node
        time.sleep(1)
        assert sum(node.memory_bytes - node.free_bytes for node in nodes()) <= most
        keys = [key for each in held() for key in each]
        assert len(set(keys)) == 1
        assert len(keys) == len(held()) <= 2
        served.delete("other")
        until(lambda: sum(each["kind"] == "replica" for each in measured()) == 1)
        assert asked(INFER, *body)[0] == 200
        assert is_alive(pid)
        assert held()
    until(lambda: not anchors())


def held():
    """Return the keys of the weights of each anchor."""
    import ray

    from tightship.cluster.weights_bookings import NAMESPACE, anchor_name, anchored_nodes

    found = [ray.get_actor(anchor_name(node), NAMESPACE) for node in anchored_nodes()]
    return [each["keys"] for each in ray.get([anchor.status.remote() for anchor in found])]


def test_what_no_node_holds_is_refused_at_once(served):
    assert served
    cluster.deployment(PATH, replicas=1)  # workers are measured once
    started = time.perf_counter()
    with pytest.raises(CapacityError) as refused:
        cluster.deployment(PATH, replicas=50)
    assert time.perf_counter() - started < PLACED_S  # it has waited for nothing
    text = str(refused.value)
    assert "50 replica(s) do not fit; the nodes hold" in text
    assert text.count(" MiB free of ") == 2
    assert json.dumps(refused.value.needed_bytes)
