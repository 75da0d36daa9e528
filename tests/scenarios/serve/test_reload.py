"""A model that is loaded anew: what the one before goes on to do, and until when."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import onnx
import pytest

pytest.importorskip("uvicorn")
from tests.driver.oip.endpoint_setting import TEXTS, Setting, X
from tests.driver.oip.http_setting import Serving, answer_on, ask
from tests.models import parse
from tightship.driver.oip import model_loading, repository
from tightship.driver.oip.refusal import OipError
from tightship.errors import OutOfMemoryError

http = pytest.importorskip("tritonclient.http")
RELU = TEXTS["neg"].replace("Neg", "Relu")


@pytest.fixture
def setting(tmp_path):
    found = Setting(tmp_path)
    found.put(X)
    yield found
    found.close()


def write(folder, text=RELU):
    onnx.save(parse(text), folder / "neg.onnx")


@contextmanager
def loading_slowly(monkeypatch):
    """Enter once a model has begun to load; the load goes on when `may_end` is set."""
    begun, may_end, load = threading.Event(), threading.Event(), model_loading.load

    def slow(*given, **options):
        begun.set()
        assert may_end.wait(60)
        return load(*given, **options)

    monkeypatch.setattr(model_loading, "load", slow)
    yield begun, may_end
    may_end.set()


@contextmanager
def beside(call, *given):
    with ThreadPoolExecutor(1) as other:
        yield other.submit(call, *given)


def test_the_one_before_runs_until_the_new_one_is_ready(setting, tmp_path, monkeypatch):
    write(tmp_path)
    with (
        loading_slowly(monkeypatch) as (begun, may_end),
        beside(setting.repository.load, "neg") as loaded,
    ):
        assert begun.wait(60)
        for _ in range(3):
            assert setting.infer()[0] == 200
            assert np.array_equal(setting.got(), -X)
        assert setting.repository.is_ready("neg")
        held = setting.repository.hold("neg")
        may_end.set()
        loaded.result(60)
    assert setting.infer()[0] == 200
    assert np.array_equal(setting.got(), np.maximum(X, 0))
    assert not held.is_closed
    setting.repository.release(held)
    assert held.is_closed


def test_a_request_that_has_begun_ends_on_the_one_before(setting, tmp_path):
    write(tmp_path)
    old = setting.repository.served("neg").model
    setting.endpoint.permits.take_free()
    with beside(setting.infer) as answered:
        while not setting.count().pending_count:
            threading.Event().wait(0.001)
        with beside(setting.repository.load, "neg") as loaded:
            while setting.repository.served("neg").model is old:
                threading.Event().wait(0.001)
            assert not old.is_closed
            setting.endpoint.permits.give_back()
            assert answered.result(60)[0] == 200
            loaded.result(60)
    assert np.array_equal(setting.got(), -X)
    assert old.is_closed


@pytest.mark.parametrize("content", [b"no model", None])
def test_a_load_that_fails_leaves_the_one_before(setting, tmp_path, content):
    path = tmp_path / "neg.onnx"
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises(OipError, match="failed to load 'neg'"):
        setting.repository.load("neg")
    assert setting.infer()[0] == 200
    assert np.array_equal(setting.got(), -X)
    (said,) = [each for each in setting.repository.index() if each["name"] == "neg"]
    assert said == {"name": "neg", "version": "1", "state": "READY"}


def test_where_memory_does_not_hold_both_the_one_before_goes_first(setting, tmp_path, monkeypatch):
    monkeypatch.setattr(repository, "available_bytes", lambda: 0)
    write(tmp_path)
    old = setting.repository.served("neg").model
    with (
        loading_slowly(monkeypatch) as (begun, may_end),
        beside(setting.repository.load, "neg") as loaded,
    ):
        assert begun.wait(60)
        assert old.is_closed
        assert setting.infer()[0] == 503
        may_end.set()
        loaded.result(60)
    assert setting.infer()[0] == 200
    (tmp_path / "neg.onnx").write_bytes(b"no model")
    with pytest.raises(OipError):
        setting.repository.load("neg")
    assert setting.infer()[0] == 200


def test_memory_that_the_system_refuses_is_that_of_the_one_before(setting, tmp_path, monkeypatch):
    write(tmp_path)
    load, old = model_loading.load, setting.repository.served("neg").model

    def scarce(*given, **options):
        if not old.is_closed:
            raise OutOfMemoryError("There is none.", requested_bytes=1)
        return load(*given, **options)

    monkeypatch.setattr(model_loading, "load", scarce)
    setting.repository.load("neg")
    setting.infer()
    assert np.array_equal(setting.got(), np.maximum(X, 0))


def test_a_request_whose_model_goes_when_it_has_run_is_answered(setting, monkeypatch):
    infer = setting.endpoint.infer

    def last(*given):
        outputs = infer(*given)
        setting.repository.unload("neg")
        return outputs

    monkeypatch.setattr(setting.endpoint, "infer", last)
    assert setting.infer()[0] == 200


def ask_by_region(serving, taken, enough):
    """Send requests, on a connection that comes to use the fast path, until it is enough."""
    statuses = set()
    with serving.connected() as connection:
        while not enough.is_set():
            statuses.add(ask(connection, serving.request(taken=taken))[0])
    assert statuses == {200}


def ask_by_message(serving, _, enough):
    """Ask by an unmodified client until it is enough."""
    given = http.InferInput("x", [1, 4], "FP32")
    given.set_data_from_numpy(X.reshape(1, 4))
    with http.InferenceServerClient(f"127.0.0.1:{serving.server.port}") as client:
        while not enough.is_set():
            found = client.infer("neg", [given]).as_numpy("y")
            assert found.tolist() in ([[0, -1, -2, -3]], [[0, 1, 2, 3]])


def test_no_request_of_any_client_fails_while_a_model_is_loaded_anew(tmp_path, monkeypatch):
    serving, enough = Serving(tmp_path, monkeypatch), threading.Event()
    work = [(ask_by_message, 0), (ask_by_message, 0), (ask_by_region, 16), (ask_by_region, 32)]
    with (
        http.InferenceServerClient(f"127.0.0.1:{serving.server.port}") as client,
        ThreadPoolExecutor(4) as clients,
    ):
        asking = [clients.submit(each, serving, taken, enough) for each, taken in work]
        try:
            for text in (RELU, TEXTS["neg"]) * 4:
                write(tmp_path, text)
                client.load_model("neg")
        finally:
            enough.set()
        for each in asking:
            each.result(60)
    serving.close()


def test_runs_need_not_wait_for_a_load(tmp_path, monkeypatch):
    serving = Serving(tmp_path, monkeypatch)
    load = b"POST /v2/repository/models/neg/load HTTP/1.1\r\nHost: localhost\r\n"
    load += b"Content-Length: 2\r\n\r\n{}"
    with (
        loading_slowly(monkeypatch) as (begun, may_end),
        serving.connected() as loader,
        serving.connected() as client,
    ):
        loader.sendall(load)
        assert begun.wait(60)
        assert ask(client, serving.request(model="arena"))[0] == 200
        may_end.set()
        assert answer_on(loader)[0] == 200
    serving.close()
