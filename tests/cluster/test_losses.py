"""The end of a node, and of the process that started the replicas."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.cluster.serve_clients import until
from tests.cluster.test_stage_file import stages_of
from tests.zoo import light
from tightship import cluster

WAIT_S = 120
CPUS = 8
DRIVER = """
import json, sys, time
import ray
from tightship import cluster

ray.init(address=sys.argv[1], log_to_driver=False, logging_level="error")
group = cluster.replicas(sys.argv[2], 2)
pids = [each["pid"] for each in group.status()]
pids += [each["pid"] for each in ray.get([anchor.status.remote() for anchor in group.anchors])]
sys.stdout.write(json.dumps(pids) + "\\n")
sys.stdout.flush()
time.sleep(600)
"""


def test_a_node_that_ends_takes_no_call_with_it(shared_cluster):
    path = light.path_of("squeezenet")
    image = np.ones(light.SHAPE, np.float32)
    with tightship.load(path, threads=CPUS) as model:
        (name,) = model.input_names
        expected = model.run({name: image})
    count = len(alive())
    added = added_node(shared_cluster)
    with (
        shared_cluster.leaving(300, 0),
        cluster.replicas(path, threads=CPUS) as group,  # one on a node, by its processors
    ):
        assert len(group.status()) == len(group.anchors) == 2
        cache = shared_cluster.folder / f"cache{len(shared_cluster.nodes) - 1}"
        assert list(cache.rglob("model.tship"))  # the new node has prepared a file of its own
        shared_cluster.kill(added)
        for _ in range(4):
            results = group.run({name: image})
            assert all(np.array_equal(results[key], expected[key]) for key in expected)
        until(lambda: len(group.status()) == 1)
    until(lambda: len(alive()) == count)


def added_node(shared_cluster):
    added = shared_cluster.add(200)
    until(lambda: added.node_id in {node.node_id for node in alive()})
    return added


def alive():
    from tightship.cluster.ray_state import alive_nodes

    return alive_nodes()


def test_the_loss_of_a_node_ends_a_pipeline_with_its_reason(shared_cluster, monkeypatch):
    monkeypatch.setattr("tightship.cluster.calls_in_flight.RESTART_S", 5.0)
    path = light.path_of("squeezenet")
    image = np.ones(light.SHAPE, np.float32)
    added = shared_cluster.add(400, 2 * CPUS + 2)
    until(lambda: added.node_id in {node.node_id for node in alive()})
    stages = stages_of(path, 2, threads=CPUS + 1)  # no other node has so many processors
    with cluster.pipeline(stages) as running:
        (name,) = stages[0].plan.inputs
        running.run({name: image})
        shared_cluster.kill(added)
        for _ in range(2):  # the call that meets the loss, and one after Ray had time to restart
            with pytest.raises(cluster.StageLostError, match=r"squeezenet.* ended"):
                running.run({name: image}, timeout_s=WAIT_S)
    until(lambda: added.node_id not in {node.node_id for node in alive()})
    until(lambda: all(node.free_bytes == node.memory_bytes for node in alive()))


def test_the_end_of_the_starting_process_ends_its_replicas(shared_cluster):
    import ray

    command = [sys.executable, "-c", DRIVER, shared_cluster.address, light.path_of("squeezenet")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = json.loads(process.stdout.readline())
        assert len(pids) == 3
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
        with cluster.replicas(light.path_of("squeezenet"), 1) as group:
            (anchor,) = group.anchors
            status = ray.get(anchor.status.remote())
            assert status["pid"] == pids[-1]  # jobs share it
            os.kill(process.pid, signal.SIGKILL)
            until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids[:-1]))
            assert ray.get(anchor.status.remote()) | {"pss_bytes": 0} == status | {"pss_bytes": 0}
            assert len(group.status()) == 1
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    until(lambda: all(node.free_bytes == node.memory_bytes for node in alive()))
