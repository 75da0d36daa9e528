"""Stages on a real Ray: what they compute, take, and survive."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.at_once import at_once
from tests.cluster.overruns import too_much
from tests.cluster.serve_clients import until
from tests.cluster.test_splitting import chain
from tests.cluster.test_stage_file import stages_of
from tests.zoo import light
from tightship import cluster
from tightship.cluster.ray_state import alive_nodes
from tightship.cluster.stage_actor import CHANNEL_BYTES, StageProbe
from tightship.cluster.worker import measured_workers
from tightship.errors import CapacityError, DeadlineError, InputError, OutOfMemoryError

WAIT_S = 120
DRIVER = """
import json, sys, time
import numpy as np
import ray
from tests.cluster.test_stage_file import stages_of
from tightship import cluster

ray.init(address=sys.argv[1], log_to_driver=False, logging_level="error")
running = cluster.pipeline(stages_of(sys.argv[2], 2))
(name,) = running.stages[0].plan.inputs
running.run({name: np.zeros((1, 3, 224, 224), np.float32)})
sys.stdout.write(json.dumps([each["pid"] for each in running.status()]) + "\\n")
sys.stdout.flush()
time.sleep(float(sys.argv[3]))
"""
CALLS = 12


def stop(pid):
    """Stop every thread of a process; the signal stops them one by one."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: all(is_stopped(stat) for stat in Path(f"/proc/{pid}/task").glob("*/stat")))


def is_stopped(stat):
    return stat.read_text().rpartition(")")[2].split()[0] == "T"


@pytest.fixture(scope="module")
def path():
    return light.path_of("squeezenet")


@pytest.fixture(scope="module")
def batches(path):
    with tightship.load(path) as model:
        (name,) = model.input_names
    random = np.random.default_rng(0)
    return [{name: random.standard_normal(light.SHAPE, np.float32)} for _ in range(CALLS)]


@pytest.fixture(scope="module")
def expected(path, batches):
    with tightship.load(path) as model:
        return [model.run(batch) for batch in batches]


@pytest.fixture(scope="module")
def running(shared_cluster, path):
    """Three stages that each test leaves working; the last one closes them."""
    assert shared_cluster.nodes
    with cluster.pipeline(stages_of(path, 3)) as found:
        yield found


def same(found, expected):
    return found.keys() == expected.keys() and all(
        found[name].tobytes() == expected[name].tobytes() for name in expected
    )


def test_calls_compute_what_the_model_computes(running, batches, expected):
    assert running.transport == "channels"
    results = list(running.run_each(batches))
    assert len(results) == CALLS
    assert all(map(same, results, expected))
    assert all(
        same(running.run(batch), each) for batch, each in zip(batches, expected, strict=True)
    )
    for status in running.status():
        assert status["data_bytes"] <= status["data_limit_bytes"]


def test_a_stage_takes_what_it_booked(running, batches):
    for _ in running.run_each(batches):
        pass
    worker = measured_workers(StageProbe).on(None)
    for stage, status in zip(running.stages, running.status(), strict=True):
        assert status["pss_bytes"] <= worker + stage.plan.peak_bytes + CHANNEL_BYTES
        assert status["data_bytes"] <= status["data_limit_bytes"]
        growth = status["data_limit_bytes"] - status["data_before_bytes"]
        assert growth <= stage.plan.peak_bytes + CHANNEL_BYTES


def test_the_status_shows_the_stages(running):
    shown = [each for node in cluster.status() for each in node["processes"]]
    stages = [each for each in shown if each["kind"] == "stage"]
    assert {each["pid"] for each in stages} == {each["pid"] for each in running.status()}
    assert {each["model"] for each in stages} == {each.plan.model for each in running.stages}
    assert all(0 < each["pss_bytes"] <= each["booked_bytes"] for each in stages)


def test_several_threads_call_at_once(running, batches, expected):
    results = at_once(lambda batch: running.run(batch, timeout_s=60), batches)
    assert all(map(same, results, expected))


def test_a_lost_stage_fails_calls_under_way_and_is_started_again(running, batches, expected):
    pid = running.status()[1]["pid"]
    running.run(batches[0])
    stop(pid)  # calls reach it, and wait
    calls = [running._calls.start(batch, None) for batch in batches[:3]]
    os.kill(pid, signal.SIGKILL)
    for call in calls:
        with pytest.raises(cluster.StageLostError, match=r"squeezenet.* ended during the call: "):
            call.result(WAIT_S)
    assert all(map(same, running.run_each(batches), expected))
    assert running.status()[1]["pid"] != pid


def test_a_stage_that_ends_between_calls_is_waited_for(running, batches, expected):
    pid = running.status()[0]["pid"]
    os.kill(pid, signal.SIGKILL)
    time.sleep(5)  # Ray hears of it, and closes the channels
    assert same(running.run(batches[0], timeout_s=WAIT_S), expected[0])
    assert running.status()[0]["pid"] != pid


def test_a_stage_may_end_before_the_first_call(shared_cluster, path, batches, expected):
    assert shared_cluster.nodes
    with cluster.pipeline(stages_of(path, 2)) as running:
        pid = running.status()[1]["pid"]
        os.kill(pid, signal.SIGKILL)
        until(lambda: running.status()[1]["pid"] != pid)
        assert same(running.run(batches[0], timeout_s=WAIT_S), expected[0])


def test_an_overrun_is_an_error_of_that_call(running, batches, expected):
    import ray

    with pytest.raises(MemoryError) as raised:
        ray.get(running.actors[1].apply.remote(too_much))
    assert isinstance(raised.value.cause, OutOfMemoryError)
    assert same(running.run(batches[0]), expected[0])


def test_bad_inputs_are_errors_of_their_call(running, batches, expected):
    (name,) = batches[0]
    with pytest.raises(InputError, match=f"`{name}` is missing; the model's inputs are"):
        running.run({})
    with pytest.raises(InputError, match="Unknown input `other`"):
        running.run({**batches[0], "other": batches[0][name]})
    with pytest.raises(InputError, match=f"Input `{name}` is 1x3x5x5 float32; the plan is for"):
        running.run({name: np.zeros((1, 3, 5, 5), np.float32)})
    with pytest.raises(InputError, match="is 1x3x224x224 float64; the plan is for"):
        running.run({name: batches[0][name].astype(np.float64)})
    assert same(running.run(batches[0]), expected[0])


def test_a_closed_pipeline_says_so_and_leaves_nothing(running, shared_cluster, batches):
    import ray

    pids = [each["pid"] for each in running.status()]
    call = running._calls.start(batches[0], None)
    call.result(WAIT_S)
    running.close()
    running.close()
    with pytest.raises(InputError, match="is closed; start another"):
        running.run(batches[0])
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))
    until(lambda: all(n.free_bytes == n.memory_bytes for n in alive_nodes()))
    assert ray.is_initialized()
    assert shared_cluster.nodes


def test_calls_are_bounded_and_a_hanging_stage_keeps_no_pipeline_open(
    shared_cluster, path, batches, expected, monkeypatch
):
    assert shared_cluster.nodes
    monkeypatch.setattr("tightship.cluster.calls_in_flight.CLOSE_S", 1.0)
    with cluster.pipeline(stages_of(path, 2), in_flight=1) as running:
        pid = running.status()[0]["pid"]
        stop(pid)
        call = running._calls.start(batches[0], None)
        with pytest.raises(DeadlineError, match=r"No call could be started within 0\.2 s"):
            running.run(batches[1], timeout_s=0.2)
        os.kill(pid, signal.SIGCONT)
        assert same(call.result(WAIT_S), expected[0])
        assert same(running.run(batches[1]), expected[1])
        stop(pid)
        with pytest.raises(DeadlineError, match=r"The stages gave no result within 0\.5 s"):
            running.run(batches[0], timeout_s=0.5)
    until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_skips_and_tied_weights_cross_processes(shared_cluster, tmp_path):
    assert shared_cluster.nodes
    path = tmp_path / "chain.onnx"
    path.write_bytes(chain(skip=True, tied=True))
    row = {"x": np.random.default_rng(1).standard_normal((1, 64), np.float32)}
    with tightship.load(path) as whole, cluster.pipeline(stages_of(path, 3)) as running:
        assert all(same(each, whole.run(row)) for each in running.run_each([row] * 8))


def test_stages_on_several_nodes_send_objects(shared_cluster, batches, expected):
    assert shared_cluster.nodes
    path = light.path_of("squeezenet")
    with cluster.pipeline(stages_of(path, 2, threads=5)) as running:  # a node has 8 processors
        assert running.transport == "objects"
        results = list(running.run_each(batches))
        assert len(results) == CALLS
        assert all(np.allclose(each[name], other[name], atol=1e-5)
                   for each, other in zip(results, expected, strict=True)
                   for name in other)  # fmt: skip
        pid = running.status()[1]["pid"]
        stop(pid)
        call = running._calls.start(batches[0], None)
        time.sleep(1)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(cluster.StageLostError, match="ended during the call"):
            call.result(WAIT_S)
        assert same(running.run(batches[1], timeout_s=WAIT_S), results[1])
        assert running.status()[1]["pid"] != pid


def test_what_no_nodes_hold_is_refused_before_a_worker_starts(shared_cluster, path, monkeypatch):
    assert shared_cluster.nodes
    monkeypatch.setattr("tightship.cluster.pipelining.measured_workers", None)
    with pytest.raises(CapacityError, match=r"The 2 stages do not fit.*node .* has 800\.0 MiB"):
        cluster.pipeline(stages_of(path, 2, threads=9))


def test_a_model_that_is_no_file_is_refused(shared_cluster):
    assert shared_cluster.nodes
    with pytest.raises(InputError, match="is a path that its nodes can read, not bytes"):
        cluster.pipeline(stages_of(chain(), 2))


@pytest.mark.parametrize("ends", ["killed", pytest.param("returns", marks=pytest.mark.slow)])
def test_the_end_of_the_calling_process_ends_its_stages(shared_cluster, path, ends):
    seconds = "600" if ends == "killed" else "0"
    command = [sys.executable, "-c", DRIVER, shared_cluster.address, path, seconds]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = json.loads(process.stdout.readline())
        assert len(pids) == 2
        if ends == "killed":
            process.kill()
        process.wait(WAIT_S)
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))
    until(lambda: all(n.free_bytes == n.memory_bytes for n in alive_nodes()))
