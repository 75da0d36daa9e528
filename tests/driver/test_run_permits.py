"""One bound of runs at once, for all endpoints of a driver."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import onnx
import pytest

from tests.small_models import relu_chain
from tightship._core import Place, RequestMetrics, RunPermits
from tightship.driver.client.client import Client
from tightship.driver.models.running import Runs
from tightship.driver.oip import cached_inference
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.http.calls import HttpCalls
from tightship.driver.oip.http.message import HttpRequest
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.repository import Repository
from tightship.driver.server.server import Server

PATIENCE_S = 30
COUNT = 2
X = np.ones((1, 4), np.float32)


def until(is_so):
    """Wait for something that other threads do."""
    stop = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < stop
        os.sched_yield()


class Inside:
    """Counter of the runs inside at once; they stay until the gate opens."""

    def __init__(self):
        self.gate, self.is_over = threading.Event(), threading.Event()
        self.lock, self.count = threading.Lock(), 0

    def counted(self, run):
        def counting(*arguments):
            with self.lock:
                self.count += 1
                if self.count > COUNT:
                    self.is_over.set()
            assert self.gate.wait(PATIENCE_S)
            with self.lock:
                self.count -= 1
            return run(*arguments)

        return counting


@pytest.fixture
def inside(monkeypatch):
    counter = Inside()
    monkeypatch.setattr(Runs, "run", counter.counted(Runs.run))
    monkeypatch.setattr(cached_inference, "run", counter.counted(cached_inference.run))
    return counter


@pytest.fixture
def endpoints(tmp_path):
    """Permits, and a call that asks for a run by each endpoint of a driver."""
    path = tmp_path / "model.onnx"
    onnx.save(onnx.load_from_string(relu_chain(1, 4)), path)
    repository, permits = Repository(lambda: {"model": ModelSource(path)}), RunPermits(COUNT)
    repository.load("model")
    server = Server(tmp_path / "driver.sock", repository, permits)
    thread = threading.Thread(target=server.serve)
    thread.start()
    calls = HttpCalls(
        InferenceEndpoint(repository, RegionFiles(is_enabled=False), permits), 1 << 16
    )
    with ExitStack() as ending:
        ending.callback(repository.close)
        ending.callback(thread.join)
        ending.callback(server.stop)
        yield permits, lambda: by_socket(tmp_path / "driver.sock"), lambda: by_http(calls)


def by_socket(path):
    with Client(path) as client:
        client.prepare_named("model").execute([X])


def by_http(calls):
    tensor = {"name": "v0", "datatype": "FP32", "shape": [1, 4], "data": [1.0] * 4}
    body = json.dumps({"inputs": [tensor]}).encode()
    response = calls.respond(HttpRequest("POST", "/v2/models/model/infer", {}, body))
    assert response.status == 200, response.parts


def test_no_more_runs_are_inside_at_once_than_permits_whatever_the_endpoint(endpoints, inside):
    permits, *ways = endpoints
    with ThreadPoolExecutor(4) as callers:
        running = [callers.submit(way) for way in 2 * ways]
        until(lambda: permits.waiting_count == 2 or inside.is_over.is_set())
        inside.gate.set()
        for each in running:
            each.result(PATIENCE_S)
    assert not inside.is_over.is_set()
    assert [permits.take_free() for _ in range(3)] == [True, True, False]


def place(*names):
    """Return the place of a caller by itself, or by the first of its names."""
    return Place((*names, *("",) * (4 - len(names))), RequestMetrics())


def test_a_permit_that_is_given_back_goes_to_who_has_waited():
    permits = RunPermits(1)
    assert permits.take_free()
    with ThreadPoolExecutor(1) as callers:
        waiting = callers.submit(permits.take, place())
        until(lambda: permits.waiting_count == 1)
        permits.give_back()
        assert not permits.is_free
        assert waiting.result(PATIENCE_S)
    permits.give_back()
    assert permits.is_free


def test_who_has_no_time_left_waits_no_more():
    permits = RunPermits(1)
    assert permits.take_free()
    assert not permits.take(place(), 1e-3)
    assert permits.waiting_count == 0
    permits.give_back()
    assert permits.is_free


@pytest.mark.parametrize("is_waiting", [False, True])
def test_who_has_left_has_no_permit(is_waiting):
    permits, mine = RunPermits(1), place()
    assert permits.take_free()
    with ThreadPoolExecutor(1) as callers:
        if is_waiting:
            waiting = callers.submit(permits.take, mine)
            until(lambda: permits.waiting_count == 1)
            assert permits.leave(mine)
            assert not waiting.result(PATIENCE_S)
        assert not permits.leave(mine)
    assert permits.waiting_count == 0
    permits.give_back()
    assert not permits.take(mine)
    assert permits.is_free


def test_there_is_a_permit():
    with pytest.raises(ValueError, match="must be at least 1"):
        RunPermits(0)
