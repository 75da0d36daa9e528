"""Threads that read, run and answer inferences over gRPC."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

grpc = pytest.importorskip("grpc")
pytest.importorskip("uvicorn")
from tests.driver.oip.endpoint_setting import X  # noqa: E402
from tests.driver.oip.grpc.test_waiting_calls import (  # noqa: E402
    CLASSES,
    PATIENCE_S,
    result,
    server,  # noqa: F401
)
from tests.driver.test_run_permits import until  # noqa: E402
from tightship.driver.oip import quick_runs  # noqa: E402
from tightship.driver.oip.grpc import early_message  # noqa: E402
from tightship.driver.oip.grpc.inference_handler import SMALL_BYTES  # noqa: E402
from tightship.driver.oip.grpc.serving import SERVICE  # noqa: E402

POOL, QUEUE = "tightship-grpc", "tightship-run"


@pytest.fixture
def free(server, monkeypatch):  # noqa: F811
    """A server with a free permit, and the threads that have run its inferences."""
    threads, infer = [], server.endpoint.infer

    def noted(*arguments):
        threads.append(threading.current_thread().name)
        return infer(*arguments)

    monkeypatch.setattr(server.endpoint, "infer", noted)
    server.endpoint.permits.give_back()
    return server, threads


def ask(free, count, identifier=""):
    served, threads = free
    request = CLASSES["ModelInferRequest"](model_name="neg", id=identifier)
    tensor = request.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    tensor.contents.fp32_contents.extend(X.tolist())
    for _ in range(count):
        call = served._call.future(request.SerializeToString(), timeout=PATIENCE_S)
        assert np.array_equal(result(call), -X)
    until(lambda: served.endpoint.permits.is_free)
    return threads


def test_the_library_has_what_reads_messages_without_a_thread():
    assert callable(early_message._server._receive_message)
    assert callable(early_message._server._is_rpc_state_active)
    assert early_message._server._RECEIVE_MESSAGE_TOKEN
    assert early_message.ReceiveMessageOperation is not None


def test_a_quick_inference_is_run_by_the_thread_that_reads_it(free, monkeypatch):
    monkeypatch.setattr(quick_runs, "QUICK_NS", 10**12)
    first, *others = ask(free, 4)
    assert first == QUEUE
    assert len({*others}) == 1
    assert not others[0].startswith((POOL, QUEUE))


def test_one_that_is_not_quick_is_run_by_a_thread_of_the_queue(free, monkeypatch):
    monkeypatch.setattr(quick_runs, "QUICK_NS", 0)
    assert ask(free, 3) == [QUEUE] * 3


def test_a_large_message_is_read_by_a_thread_of_the_pool(free):
    (name,) = ask(free, 1, "i" * SMALL_BYTES)
    assert name.startswith(POOL)


def test_a_thread_waits_for_messages_where_the_library_is_another(free, monkeypatch):
    monkeypatch.setattr(early_message, "_server", SimpleNamespace())
    (name,) = ask(free, 1)
    assert name.startswith(POOL)


def test_a_call_without_a_message_is_refused(free):
    served, _ = free
    call = served.channel.stream_unary(f"/{SERVICE}/ModelInfer")
    with pytest.raises(grpc.RpcError, match="takes one message, and none came"):
        call(iter(()), timeout=PATIENCE_S)


def test_calls_count_as_open_until_they_have_ended(server):  # noqa: F811
    state = server.server._server._state
    asked = [server.ask() for _ in range(3)]
    assert state.active_rpc_count == 3
    server.endpoint.permits.give_back()
    for each in asked:
        assert np.array_equal(result(each), -X)
    until(lambda: state.active_rpc_count == 0)


def test_a_server_that_ends_refuses_what_no_thread_can_do_any_more(free):
    served, _ = free
    served.server._threads.shutdown()
    request = CLASSES["ModelInferRequest"](model_name="neg", id="i" * SMALL_BYTES)
    call = served._call.future(request.SerializeToString(), timeout=PATIENCE_S)
    assert call.code() is grpc.StatusCode.UNAVAILABLE
