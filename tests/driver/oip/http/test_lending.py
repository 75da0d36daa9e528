"""Fast-path connections of the native core: requests it answers, hands back and forgets."""

import gc
import http.client
import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from queue import Queue

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("httptools")
from tests.driver.oip.endpoint_setting import TEXTS, Setting, X
from tests.driver.oip.http_setting import Serving, answer_on, ask
from tests.driver.test_run_permits import until
from tests.models import parse
from tightship._core import LentConnections, RequestMetrics, RunPermits
from tightship.driver.oip.http.lending import Lending
from tightship.driver.oip.http.message import HttpRequest
from tightship.driver.oip.infer_request import decode
from tightship.errors import StoppedError

READY = b"GET /v2/health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n"
LENT_AFTER = 2
"""Requests that Python answers before the fast path: one is read, and one runs again."""
LENT_RUNS = LENT_AFTER + 1
"""Runs until a connection uses the fast path: only an answer of the core shows that it does."""


@pytest.fixture
def serving(tmp_path, monkeypatch):
    found = Serving(tmp_path, monkeypatch)
    yield found
    found.close()


@pytest.fixture
def lent(serving):
    """A fast-path connection, because `neg` has come on it again."""
    with serving.connected() as connection:
        for _ in range(LENT_RUNS):
            assert ask(connection, serving.request())[0] == 200
        assert len(serving.asked) == LENT_AFTER
        serving.asked.clear()
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
def test_what_comes_again_is_run_again_without_python(serving, model):
    request = serving.request(model=model)
    results, answers = [], []
    with serving.connected() as connection:
        for scale in range(10):
            serving.put(X * scale)
            answers.append(ask(connection, request))
            results.append(serving.got())
    assert len(serving.asked) == LENT_AFTER
    assert answers[0][0] == 200
    assert answers == answers[:1] * 10
    assert serving.count(model).success_count == 10
    assert serving.count(model).pending_count == 0
    for scale, result in enumerate(results):
        serving.put(X * scale)
        serving.infer(model=model)
        assert np.array_equal(result, serving.got())


def test_other_requests_are_read_and_known_ones_answered_again(serving, lent):
    for _ in range(3):
        assert ask(lent, READY)[0] == 200
        assert ask(lent, serving.request())[0] == 200
        assert ask(lent, serving.request(taken=32))[0] == 200
    request = serving.request()
    lent.sendall(request + READY + request)
    with lent.makefile("rb") as file:
        assert [status_on(file) for _ in range(3)] == [200] * 3
    lent.sendall(request[:-1])
    assert ask(lent, request[-1:])[0] == 200
    assert serving.count().success_count == LENT_RUNS + 9


@given(st.lists(st.sampled_from("kkkor"), max_size=6).map("".join), st.data())
@settings(suppress_health_check=list(HealthCheck), max_examples=60)
def test_however_bytes_are_cut_each_request_is_answered_once(serving, lent, kinds, data):
    before = serving.count().success_count
    requests = {"k": serving.request(), "o": serving.request(taken=32), "r": READY}
    stream = b"".join(requests[each] for each in kinds)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=4)))
    for start, stop in pairwise([0, *cuts, len(stream)]):
        lent.sendall(stream[start:stop])
    with lent.makefile("rb") as file:
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
@pytest.mark.usefixtures("lent")
def test_what_was_refused_is_refused_when_it_comes_again(serving, part, other, status):
    request = serving.request().replace(part, other)
    with serving.connected() as connection:
        assert [ask(connection, request)[0] for _ in range(4)] == [status] * 4
    assert serving.count().success_count == LENT_RUNS


def test_a_connection_that_has_come_back_uses_the_fast_path_later(serving, lent):
    for count in (2, 4, 8, 16):
        assert ask(lent, READY)[0] == 200
        serving.asked.clear()
        for _ in range(20):
            ask(lent, serving.request())
        assert len(serving.asked) == count


def test_connections_that_come_at_once_share_the_permit(serving):
    def many(taken):
        request = serving.request(taken=taken)
        with serving.connected() as connection:
            return {ask(connection, request)[0] for _ in range(100)}

    with ThreadPoolExecutor(3) as clients:
        assert list(clients.map(many, (16, 32, 48))) == [{200}] * 3
    assert serving.count().success_count == 300
    assert len(serving.asked) < 300  # some need no Python, however late their turn comes


def test_who_asks_the_same_of_two_models_is_answered_by_each(serving):
    calls, body = serving.calls, serving.body()
    targets = {name: f"/v2/models/{name}/infer" for name in ("neg", "arena")}
    known = {}
    for name in [*targets, *targets]:
        request = HttpRequest("POST", targets[name], {}, body)
        assert calls.respond(request).status == 200
        calls.remember(name.encode(), request)
        known[name] = calls.known(name.encode())
    assert calls.cached(known["neg"]) is None
    cached, response = calls.cached(known["arena"])
    assert cached.model is serving.repository.served("arena").model
    assert b'"arena"' in response


def test_a_region_that_is_gone_is_used_no_more(serving, lent):
    assert object_is_mapped(serving.path)
    serving.regions.unregister("r")
    assert not object_is_mapped(serving.path)
    assert ask(lent, serving.request()) == (
        404,
        {"error": "Unable to find shared memory region: 'r'"},
    )


def test_a_region_that_is_gone_harms_no_other(serving, lent):
    serving.register("other")
    serving.regions.unregister("other")
    assert ask(lent, serving.request())[0] == 200
    assert serving.asked == []


def test_a_region_that_is_shortened_is_refused(serving, lent):
    os.truncate(serving.path, 16)
    status, said = ask(lent, serving.request())
    assert (status, "shorter" in said["error"]) == (400, True)
    assert serving.count().fail_count == 1
    assert serving.count().success_count == LENT_RUNS


def test_a_model_that_is_loaded_anew_is_the_one_that_runs(serving, lent, tmp_path):
    onnx.save(parse(TEXTS["neg"].replace("Neg", "Relu")), tmp_path / "neg.onnx")
    serving.repository.load("neg")
    serving.put(X)
    assert ask(lent, serving.request())[0] == 200
    assert np.array_equal(serving.got(), X)
    serving.repository.unload("neg")
    assert ask(lent, serving.request())[0] == 503


def test_who_waits_for_a_permit_has_the_next(serving, lent):
    serving.endpoint.permits.take_free()
    lent.sendall(serving.request())
    lent.settimeout(0.05)
    with pytest.raises(TimeoutError):
        lent.recv(1)
    assert not serving.endpoint.permits.is_free
    serving.endpoint.permits.give_back()
    lent.settimeout(20)
    assert answer_on(lent)[0] == 200


def test_a_client_that_has_gone_leaves_nothing(serving, lent):
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with serving.connected() as connection:
            for _ in range(4):
                assert ask(connection, serving.request())[0] == 200
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
    assert ask(lent, serving.request())[0] == 200
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)  # the server's monitor opens some


def test_a_fast_path_connection_ends_with_the_server(tmp_path, monkeypatch):
    serving = Serving(tmp_path, monkeypatch)
    with serving.connected() as connection:
        for _ in range(4):
            assert ask(connection, serving.request())[0] == 200
        serving.close()
        assert connection.recv(1) == b""


class Endless:
    """A run that ends when it is released, or after so long that a test has failed."""

    def __init__(self):
        self.begun, self.was_stopped = threading.Event(), False

    def run(self, stop):
        self.begun.set()
        for _ in range(20_000):
            if stop.is_set():
                self.was_stopped = True
                raise StoppedError("It was stopped.")
            threading.Event().wait(0.001)

    def alone(self):
        return None


class RefCounted:
    """A run that lasts until it is released."""

    def __init__(self):
        self.begun, self.may_end = threading.Event(), threading.Event()

    def run(self, _):
        self.begun.set()
        self.may_end.wait(20)

    def alone(self):
        return None


def keep(lending, setting, cached, answer=b"answer"):
    """Have `again` known as a request to the latest version of `neg`."""
    is_current = partial(setting.endpoint.still_has, cached, "neg", None)
    lending.keep(b"again", answer, cached, is_current)


@contextmanager
def lending_to(setting, answer, run=None):
    """The client's side of a connection on which `again` gets an answer, and what comes back."""
    lending, request, came_back = Lending(setting.endpoint), decode(setting.body(), None), Queue()
    setting.endpoint.infer("neg", None, request)
    cached = setting.endpoint.cached("neg", None, request)
    keep(lending, setting, replace(cached, again=run or cached.again), answer)
    del cached  # which keeps its region mapped
    ours, theirs = socket.socketpair()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    thread = threading.Thread(target=lending.serve, args=(lambda back, *said: back(*said),))
    thread.start()
    with ours, theirs:
        lending.lend(theirs.fileno(), lambda *said: came_back.put(said))
        yield ours, came_back
        lending.close()
        thread.join()
    lending.forget_all()
    setting.close()


@pytest.fixture
def held(tmp_path):
    """A setting with a run that is going on for a connection, the run, and the client's side."""
    setting, run = Setting(tmp_path), RefCounted()
    with lending_to(setting, b"answer", run) as (ours, _):
        ours.sendall(b"again")
        assert run.begun.wait(20)
        yield setting, run, ours
        run.may_end.set()


def test_what_a_socket_does_not_take_comes_back(tmp_path):
    answer = bytes(range(250)) * 30
    with lending_to(Setting(tmp_path), answer) as (ours, came_back):
        ours.sendall(b"again")
        is_known, unsent = came_back.get(timeout=20)
        assert is_known
        assert 0 < len(unsent) < len(answer)
        assert ours.recv(len(answer)) + unsent == answer


def test_a_region_stays_until_the_runs_that_use_it_end(held):
    setting, run, ours = held
    setting.regions.unregister("r")
    assert [each.name for each in setting.regions.status(None)] == ["r"]
    run.may_end.set()
    assert ours.recv(100) == b"answer"
    assert setting.regions.status(None) == []
    assert not object_is_mapped(setting.path)


def test_what_changes_while_it_is_remembered_is_not_known(tmp_path, monkeypatch):
    setting = Setting(tmp_path)
    lending, request = Lending(setting.endpoint), decode(setting.body(), None)
    setting.endpoint.infer("neg", None, request)
    remember = Lending._remember

    def late(*given):
        setting.regions.unregister("r")
        remember(*given)

    monkeypatch.setattr(Lending, "_remember", late)
    keep(lending, setting, setting.endpoint.cached("neg", None, request))
    assert not lending.knows(b"again")
    assert not object_is_mapped(setting.path)
    setting.close()


def test_bytes_that_another_thread_is_forgetting_are_not_known_anew(tmp_path):
    setting = Setting(tmp_path)
    lending, request = Lending(setting.endpoint), decode(setting.body(), None)
    setting.endpoint.infer("neg", None, request)
    keep(lending, setting, setting.endpoint.cached("neg", None, request))
    lending._known.clear()  # what that thread does first
    keep(lending, setting, setting.endpoint.cached("neg", None, request))
    assert not lending.knows(b"again")
    lending.forget_all()
    setting.close()


def test_an_error_in_a_release_ends_no_process(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: told.append(found.exc_type))
    lent, metrics, fail = LentConnections(RunPermits(1)), RequestMetrics(), {}.popitem
    lent.remember_call(1, (b"again", b"answer"), list, [], fail, (metrics, "neg"))
    lent.forget(1)
    assert told == [KeyError]


def test_a_run_that_goes_on_is_left_when_no_inference_is_to_go_on(tmp_path):
    setting, run = Setting(tmp_path), Endless()
    with lending_to(setting, b"answer", run) as (ours, came_back):
        ours.sendall(b"again")
        assert run.begun.wait(20)
        setting.endpoint.stop.set()
        assert came_back.get(timeout=20) == (False, b"")
    assert run.was_stopped


def test_a_model_is_closed_once_no_run_of_it_goes_on(held):
    setting, run, ours = held
    model = setting.repository.served("neg").model
    closing = threading.Thread(target=setting.repository.unload, args=("neg",))
    closing.start()
    closing.join(0.05)
    assert closing.is_alive()
    assert not model.is_closed
    run.may_end.set()
    closing.join(20)
    assert model.is_closed
    assert ours.recv(100) == b"answer"


def test_a_run_that_goes_on_has_a_permit_and_is_not_pending(held):
    setting, run, ours = held
    assert not setting.endpoint.permits.is_free
    assert setting.count().pending_count == 0
    run.may_end.set()
    ours.recv(100)
    assert setting.endpoint.permits.take_free()
    setting.endpoint.permits.give_back()
    assert setting.count().pending_count == 0
