"""Status of a real cluster, as values, as a command, and as metrics of Ray."""

import json
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.zoo import light
from tightship import cluster
from tightship.cli.cluster_command import lines

WIDTH_MAX = 100
WAIT_S = 120


@pytest.fixture(scope="module")
def group(shared_cluster):
    assert shared_cluster.nodes
    with cluster.replicas(light.path_of("squeezenet"), 2) as found:
        yield found


def processes():
    return [each for node in cluster.status() for each in node["processes"]]


def test_anchors_and_replicas_are_measured(group):
    found = processes()
    assert sorted(each["kind"] for each in found) == ["anchor", "replica", "replica"]
    pids = {each["pid"] for each in found if each["kind"] == "replica"}
    assert pids == {each["pid"] for each in group.status()}
    for each in found:
        assert each["model"] == "light_squeezenet.onnx"
        assert each["pss_bytes"] > 0
        assert each["pss_bytes"] <= each["booked_bytes"]


def test_a_replica_that_has_ended_is_missing(group):
    import ray

    before = {each["pid"] for each in processes()}
    ray.kill(group.actors[0], no_restart=False)
    end = time.monotonic() + WAIT_S
    while len(after := {each["pid"] for each in processes()}) < 3 or after == before:
        assert time.monotonic() < end
        time.sleep(0.2)
    assert len(before & after) == 2


@pytest.mark.usefixtures("group")
def test_the_command_prints_tables_and_json(shared_cluster):
    text = list(lines(cluster.status()))
    assert max(map(len, text)) <= WIDTH_MAX
    assert "\n".join(text).count("replica  ") == 2
    command = [sys.executable, "-m", "tightship.cli", "cluster", "status", "--json"]
    command += ["--address", shared_cluster.address]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert len(found["nodes"]) == len(cluster.status())  # others may have ended before
    assert sum(len(node["processes"]) for node in found["nodes"]) == 3


@pytest.mark.usefixtures("group")
def test_the_numbers_are_metrics_of_ray():
    import ray

    ports = [node["MetricsExportPort"] for node in ray.nodes() if node["Alive"]]
    end = time.monotonic() + WAIT_S
    while True:
        text = "".join(scraped(port) for port in ports)
        lines = [line for line in text.splitlines() if "tightship_pss_bytes{" in line]
        if len([line for line in lines if 'kind="replica"' in line]) >= 2:
            break
        assert time.monotonic() < end, text[:1000]
        time.sleep(1)
    assert "tightship_booked_bytes{" in text


def scraped(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            return answer.read().decode()
    except OSError:
        return ""
