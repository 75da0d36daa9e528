"""Requests over HTTP that come again, and what changes between them."""

import gc
import http.client
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("uvicorn")
from tests.driver.oip.endpoint_setting import TEXTS, X
from tests.driver.oip.http_setting import Serving, answer_on, ask
from tests.driver.test_run_permits import until
from tests.models import parse
from tightship.driver.oip.cached_inference import Repeat

READY = b"GET /v2/health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n"
RUNS = 3
"""Runs after which a request is bound, and its run is repeated."""


@pytest.fixture
def serving(tmp_path, monkeypatch):
    found = Serving(tmp_path, monkeypatch)
    yield found
    found.close()


@pytest.fixture
def again(serving):
    """A connection on which `neg` has come again."""
    with serving.connected() as connection:
        for _ in range(RUNS):
            assert ask(connection, serving.request())[0] == 200
        yield connection


def status_on(file):
    """Return the status of one answer of several."""
    status = int(file.readline().split()[1])
    headers = http.client.parse_headers(file)
    file.read(int(headers["Content-Length"]))
    return status


def object_is_mapped(path):
    return f" {path.stat().st_ino} " in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("model", ["neg", "arena"])
def test_what_comes_again_is_run_again(serving, model):
    request = serving.request(model=model)
    results, answers = [], []
    with serving.connected() as connection:
        for scale in range(10):
            serving.put(X * scale)
            answers.append(ask(connection, request))
            results.append(serving.got())
    assert answers[0][0] == 200
    assert answers == answers[:1] * 10
    assert serving.count(model).success_count == 10
    assert serving.count(model).pending_count == 0
    for scale, result in enumerate(results):
        serving.put(X * scale)
        serving.infer(model=model)
        assert np.array_equal(result, serving.got())


def test_other_requests_are_read_and_known_ones_answered_again(serving, again):
    for _ in range(3):
        assert ask(again, READY)[0] == 200
        assert ask(again, serving.request())[0] == 200
        assert ask(again, serving.request(taken=32))[0] == 200
    request = serving.request()
    again.sendall(request + READY + request)
    with again.makefile("rb") as file:
        assert [status_on(file) for _ in range(3)] == [200] * 3
    again.sendall(request[:-1])
    assert ask(again, request[-1:])[0] == 200
    assert serving.count().success_count == RUNS + 9


@given(st.lists(st.sampled_from("kkkor"), max_size=6).map("".join), st.data())
@settings(suppress_health_check=list(HealthCheck), max_examples=60)
def test_however_bytes_are_cut_each_request_is_answered_once(serving, again, kinds, data):
    before = serving.count().success_count
    requests = {"k": serving.request(), "o": serving.request(taken=32), "r": READY}
    stream = b"".join(requests[each] for each in kinds)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=4)))
    for start, stop in pairwise([0, *cuts, len(stream)]):
        again.sendall(stream[start:stop])
    with again.makefile("rb") as file:
        assert [status_on(file) for _ in kinds] == [200] * len(kinds)
    assert serving.count().success_count == before + len(kinds) - kinds.count("r")


@pytest.mark.parametrize(
    ("part", "other", "status"),
    [
        (b"Host: localhost", b"Host: models.example.org", 403),
        (b"POST", b"GET", 405),
        (b'{"inputs"', b'["inputs"', 400),
    ],
)
@pytest.mark.usefixtures("again")
def test_what_was_refused_is_refused_when_it_comes_again(serving, part, other, status):
    request = serving.request().replace(part, other)
    with serving.connected() as connection:
        assert [ask(connection, request)[0] for _ in range(4)] == [status] * 4
    assert serving.count().success_count == RUNS


def test_connections_that_come_at_once_share_the_permit(serving):
    def many(taken):
        request = serving.request(taken=taken)
        with serving.connected() as connection:
            return {ask(connection, request)[0] for _ in range(100)}

    with ThreadPoolExecutor(3) as clients:
        assert list(clients.map(many, (16, 32, 48))) == [{200}] * 3
    assert serving.count().success_count == 300


def test_a_region_that_is_gone_is_used_no_more(serving, again):
    assert object_is_mapped(serving.path)
    serving.regions.unregister("r")
    assert not object_is_mapped(serving.path)
    assert ask(again, serving.request()) == (
        404,
        {"error": "Unable to find shared memory region: 'r'"},
    )


def test_a_region_that_is_gone_harms_no_other(serving, again):
    serving.register("other")
    serving.regions.unregister("other")
    assert ask(again, serving.request())[0] == 200


def test_a_region_that_is_shortened_is_refused(serving, again):
    os.truncate(serving.path, 16)
    status, said = ask(again, serving.request())
    assert (status, "shorter" in said["error"]) == (400, True)
    assert serving.count().fail_count == 1
    assert serving.count().success_count == RUNS


def test_a_model_that_is_loaded_anew_is_the_one_that_runs(serving, again, tmp_path):
    onnx.save(parse(TEXTS["neg"].replace("Neg", "Relu")), tmp_path / "neg.onnx")
    serving.repository.load("neg")
    serving.put(X)
    assert ask(again, serving.request())[0] == 200
    assert np.array_equal(serving.got(), X)
    serving.repository.unload("neg")
    assert ask(again, serving.request())[0] == 503


def test_who_waits_for_a_permit_has_the_next(serving, again):
    serving.endpoint.permits.take_free()
    again.sendall(serving.request())
    again.settimeout(0.05)
    with pytest.raises(TimeoutError):
        again.recv(1)
    assert not serving.endpoint.permits.is_free
    serving.endpoint.permits.give_back()
    again.settimeout(20)
    assert answer_on(again)[0] == 200


def test_a_client_that_has_gone_leaves_nothing(serving, again):
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with serving.connected() as connection:
            for _ in range(4):
                assert ask(connection, serving.request())[0] == 200
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
    assert ask(again, serving.request())[0] == 200
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)  # the server's monitor opens some


def test_a_connection_that_was_used_ends_with_the_server(tmp_path, monkeypatch):
    serving = Serving(tmp_path, monkeypatch)
    with serving.connected() as connection:
        for _ in range(4):
            assert ask(connection, serving.request())[0] == 200
        serving.close()
        assert connection.recv(1) == b""


@pytest.fixture
def held(serving, again, monkeypatch):
    """A connection with a run that is going on, and the event that lets it end."""
    begun, may_end, run = threading.Event(), threading.Event(), Repeat.run

    def waiting(repeat, stop):
        begun.set()
        assert may_end.wait(20)
        run(repeat, stop)

    monkeypatch.setattr(Repeat, "run", waiting)
    again.sendall(serving.request())
    assert begun.wait(20)
    yield again, may_end
    may_end.set()


def test_a_region_stays_until_the_runs_that_use_it_end(serving, held):
    connection, may_end = held
    serving.regions.unregister("r")
    assert [each.name for each in serving.regions.status(None)] == ["r"]
    may_end.set()
    assert answer_on(connection)[0] == 200
    assert serving.regions.status(None) == []
    until(lambda: not object_is_mapped(serving.path))


def test_a_model_is_closed_once_no_run_of_it_goes_on(serving, held):
    connection, may_end = held
    model = serving.repository.served("neg").model
    closing = threading.Thread(target=serving.repository.unload, args=("neg",))
    closing.start()
    closing.join(0.05)
    assert closing.is_alive()
    assert not model.is_closed
    may_end.set()
    closing.join(20)
    assert model.is_closed
    assert answer_on(connection)[0] == 200


def test_a_run_that_goes_on_has_a_permit_and_is_not_pending(serving, held):
    connection, may_end = held
    assert not serving.endpoint.permits.is_free
    assert serving.count().pending_count == 0
    may_end.set()
    answer_on(connection)
    assert serving.endpoint.permits.take_free()
    serving.endpoint.permits.give_back()
    assert serving.count().pending_count == 0
