"""Runs of native clients are counted by model, beside those of the other endpoints."""

import re
import threading

import numpy as np
import onnx
import pytest

from tests.small_models import relu_chain
from tightship._core import RunPermits
from tightship.driver.client.client import Client
from tightship.driver.models.running import Runs
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.monitor import Monitor
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.repository import Repository
from tightship.driver.server.server import Server
from tightship.errors import DriverError, GraphError

COUNT = 40
X = np.ones((1, 4), np.float32)


@pytest.fixture
def served(tmp_path):
    """An endpoint, and where native clients of the same models come."""
    onnx.save(onnx.load_from_string(relu_chain(1, 4)), tmp_path / "model.onnx")
    repository, permits = (
        Repository(lambda: {"model": ModelSource(tmp_path / "model.onnx")}),
        RunPermits(1),
    )
    repository.load("model")
    server = Server(tmp_path / "driver.sock", repository, permits)
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield (
        InferenceEndpoint(repository, RegionFiles(is_enabled=False), permits),
        tmp_path / "driver.sock",
    )
    server.stop()
    thread.join()
    repository.close()


def metric(endpoint, name, labels):
    found = re.search(rf"^{name}{{{labels}}} (\d+)$", endpoint.metrics(), re.MULTILINE)
    return int(found[1])


NATIVE = 'model="model",version="1",face="native"'
OWN = 'model="",version="",face="native"'


def test_runs_are_counted_on_every_path_that_answers_them(served, monkeypatch):
    endpoint, path = served
    asked, plain = [], Runs.run
    monkeypatch.setattr(Runs, "run", lambda *each: asked.append(None) or plain(*each))
    with Client(path) as client, client.segment(1 << 12) as segment:
        model = client.prepare_named("model")
        ends = [segment.place((1, 4), "f4")], [segment.place((1, 4), "f4")]
        for _ in range(COUNT):
            model.execute(*ends)
        assert len(asked) < COUNT  # the others were repeated in the native core
        assert metric(endpoint, "nv_inference_request_success", NATIVE) == COUNT
        assert metric(endpoint, "nv_inference_pending_request_count", NATIVE) == 0
        assert metric(endpoint, "nv_inference_request_success", OWN) == 0
    protocol = NATIVE.replace("native", "protocol")
    assert metric(endpoint, "nv_inference_request_success", protocol) == 0
    (said,) = Monitor(endpoint, path).status()["models"]
    assert (said["success_count"], said["native_count"]) == (COUNT, COUNT)


def test_models_of_clients_own_are_counted_as_one(served):
    endpoint, path = served
    with Client(path) as client:
        for _ in range(2):
            client.prepare(relu_chain(1, 4)).execute([X])
    assert metric(endpoint, "nv_inference_request_success", OWN) == 2
    assert metric(endpoint, "nv_inference_request_success", NATIVE) == 0


def test_a_run_that_fails_is_a_failure(served, monkeypatch):
    endpoint, path = served

    def fails(*_):
        raise GraphError("It cannot be.")

    monkeypatch.setattr(Runs, "_run", fails)
    with Client(path) as client, pytest.raises(DriverError):
        client.prepare_named("model").execute([X])
    assert metric(endpoint, "nv_inference_request_failure", NATIVE) == 1
    assert metric(endpoint, "nv_inference_request_success", NATIVE) == 0
