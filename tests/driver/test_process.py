"""A driver that cannot begin leaves nothing open; one that ends waits for no run without end."""

import os
import queue
import socket
import threading
from contextlib import ExitStack, contextmanager

import onnx
import pytest

grpc = pytest.importorskip("grpc")
pytest.importorskip("uvicorn")
from tests.driver.oip.endpoint_setting import TEXTS  # noqa: E402
from tests.driver.oip.http_setting import Endless  # noqa: E402
from tests.models import parse  # noqa: E402
from tightship.driver.oip.grpc.serving import SERVICE  # noqa: E402
from tightship.driver.oip.limits import EndpointLimits  # noqa: E402
from tightship.driver.oip.model_source import ModelSource  # noqa: E402
from tightship.driver.oip.schema import message_classes  # noqa: E402
from tightship.driver.process import Driver, Listening  # noqa: E402
from tightship.errors import InputError  # noqa: E402
from tightship.model import Model  # noqa: E402

OK, LATE = grpc.StatusCode.OK, grpc.StatusCode.DEADLINE_EXCEEDED


def sockets():
    """Count the sockets of this process."""
    return sum(link(each).startswith("socket:") for each in os.listdir("/proc/self/fd"))


def link(number):
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except FileNotFoundError:  # of the list itself
        return ""


@pytest.mark.parametrize("what", ["grpc", "socket"])
def test_what_one_endpoint_has_opened_is_closed_when_another_cannot_listen(tmp_path, what):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "127.0.0.1", (taken.getsockname()[1] if what == "grpc" else 0)
        if what == "socket":
            (tmp_path / "driver.sock").write_text("no socket")
        where = Listening(tmp_path / "driver.sock", http=("127.0.0.1", 0), grpc=address)
        with pytest.raises(InputError):
            Driver(dict, where)  # grpcio keeps some of its own
        before = sockets()
        with pytest.raises(InputError):
            Driver(dict, where)
        assert sockets() <= before


@contextmanager
def serving(folder, *, drain_s):
    """A driver of the model `neg` in this process that ends with the block."""
    onnx.save(parse(TEXTS["neg"]), folder / "neg.onnx")
    where = Listening(
        folder / "driver.sock",
        http=("127.0.0.1", 0),
        grpc=("127.0.0.1", 0),
        limits=EndpointLimits(drain_s=drain_s),
    )
    running = Driver(lambda: {"neg": ModelSource(folder / "neg.onnx")}, where)
    thread = threading.Thread(target=running.serve)
    thread.start()
    try:
        yield running
    finally:
        running.stop()
        thread.join()


def call_over_http(port):
    body = b'{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}]}'
    head = f"POST /v2/models/neg/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"{head}\r\n\r\n".encode() + body)
        connection.recv(1 << 16)


def grpc_request():
    request = message_classes()["ModelInferRequest"]
    message = request(model_name="neg", raw_input_contents=[bytes(16)])
    message.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    return message.SerializeToString()


def grpc_call(channel):
    """Ask for a run; its answer is that of the future."""
    return channel.unary_unary(f"/{SERVICE}/ModelInfer").future(grpc_request())


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_a_run_that_goes_on_too_long_is_left_when_the_driver_ends(tmp_path, monkeypatch, kind):
    endless = Endless()
    monkeypatch.setattr(Model, "run", lambda *_, stop, **__: endless.run(stop))
    with serving(tmp_path, drain_s=0.05) as running:
        port = running.ports[kind]
        if kind == "http":
            threading.Thread(target=call_over_http, args=(port,)).start()
        else:
            channel = grpc.insecure_channel(f"127.0.0.1:{port}")
            call = grpc_call(channel)
        assert endless.begun.wait(20)
    assert endless.was_stopped
    if kind == "grpc":
        assert call.code() in {grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE}
        channel.close()


def test_a_call_of_grpc_that_has_begun_is_answered_before_the_end(tmp_path):
    with ExitStack() as opened:
        running = opened.enter_context(serving(tmp_path, drain_s=60))
        channel = opened.enter_context(grpc.insecure_channel(f"127.0.0.1:{running.ports['grpc']}"))
        permits = running._endpoint.permits
        assert permits.take_free()
        call = grpc_call(channel)
        while not permits.waiting_count:
            assert not call.done()
        running.stop()
        probe = channel.unary_unary(f"/{SERVICE}/ServerLive")
        while probe.future(b"", timeout=1).code() in {OK, LATE}:
            pass  # it takes no more calls; one that comes in that moment may have no answer
        permits.give_back()
        assert call.code() is OK


def test_an_idle_stream_of_grpc_does_not_delay_the_end(tmp_path):
    asked = queue.Queue()
    with ExitStack() as opened:
        running = opened.enter_context(serving(tmp_path, drain_s=3600))
        channel = opened.enter_context(grpc.insecure_channel(f"127.0.0.1:{running.ports['grpc']}"))
        stream = channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
        answers = stream(iter(asked.get, None), timeout=60)
        opened.callback(asked.put, None)
        asked.put(grpc_request())
        next(answers)
        running.stop()
        assert answers.code() is grpc.StatusCode.UNAVAILABLE
