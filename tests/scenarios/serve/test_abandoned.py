"""Calls whose clients are gone, or too late, never run; models have turns one after another.

A server of one turn, in a process of its own, is spoken to from outside.
"""

import http.client
import json
import socket
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

grpc = pytest.importorskip("grpc")
pytest.importorskip("uvicorn")
from tests.driver.oip.served import running, server  # noqa: E402
from tests.driver.test_run_permits import until  # noqa: E402
from tightship.driver.oip.grpc.serving import SERVICE  # noqa: E402
from tightship.driver.oip.schema import message_classes  # noqa: E402

PATIENCE_S = 120
ANSWER_S = 30
"""Most that an answer may take: less than a run of the endless model, which ends after minutes."""
COUNT = 20
FLOOD = 3
QUICK = 5
INPUTS = {
    "simple": {name: ("INT32", np.ones((1, 16), np.int32)) for name in ("INPUT0", "INPUT1")},
    "endless": {"x": ("FP32", np.zeros((1, 1), np.float32))},
}
DOOMED = """
import sys
from pathlib import Path
import numpy as np
from tightship.driver import Client
client = Client(Path(sys.argv[1]))
model = client.prepare_named(sys.argv[2])
kind, shape, inputs = sys.argv[3], eval(sys.argv[4]), int(sys.argv[5])
arrays = [np.ones(shape, kind)] * inputs
fences = [model.execute_fenced(arrays) for _ in range(int(sys.argv[6]))]
print("asked", flush=True)
sys.stdin.read()
"""
"""A native client with calls of a model that wait, until it is killed."""


def http_request(model, inputs):
    said = [
        {
            "name": name,
            "datatype": kind,
            "shape": array.shape,
            "parameters": {"binary_data_size": array.nbytes},
        }
        for name, (kind, array) in inputs.items()
    ]
    header = json.dumps({"inputs": said}).encode()
    body = header + b"".join(array.tobytes() for _, array in inputs.values())
    lines = (
        f"POST /v2/models/{model}/infer HTTP/1.1",
        "Host: localhost",
        f"Inference-Header-Content-Length: {len(header)}",
        f"Content-Length: {len(body)}\r\n\r\n",
    )
    return "\r\n".join(lines).encode() + body


class Caller:
    """Clients of a server of one turn."""

    def __init__(self, served, opened):
        self.served, self.opened = served, opened
        self.channel = opened.enter_context(grpc.insecure_channel(served.grpc))

    def by_http(self, model, inputs=None):
        """A connection on which an answer is awaited."""
        host, port = self.served.http.split(":")
        connection = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        self.opened.enter_context(connection)
        connection.sendall(http_request(model, inputs or INPUTS[model]))
        return connection

    def by_grpc(self, model, timeout_s=None):
        message = message_classes()["ModelInferRequest"](model_name=model)
        for name, (kind, array) in INPUTS[model].items():
            message.inputs.add(name=name, datatype=kind, shape=array.shape)
            message.raw_input_contents.append(array.tobytes())
        call = self.channel.unary_unary(f"/{SERVICE}/ModelInfer")
        return call.future(message.SerializeToString(), timeout=timeout_s)

    def by_socket(self, model, count=1):
        """A process with fenced executions that no client waits for."""
        array = next(iter(INPUTS[model].values()))[1]
        what = (array.dtype.str, array.shape, len(INPUTS[model]), count)
        command = [sys.executable, "-c", DOOMED, self.served.socket, model, *map(str, what)]
        process = self.opened.enter_context(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
        self.opened.callback(process.kill)
        assert process.stdout.readline() == b"asked\n"
        return process

    def get(self, path):
        with urllib.request.urlopen(f"http://{self.served.http}{path}", timeout=60) as response:
            return response.read().decode()

    def counts(self, model, endpoint="protocol"):
        """Runs that ended well, that failed, and calls that wait."""
        label = f'{{model="{model}",version="1",face="{endpoint}"}} '
        lines = self.get("/metrics").splitlines()
        names = ("request_success", "request_failure", "pending_request_count")
        return tuple(
            int(line.rpartition(" ")[2])
            for name in names
            for line in lines
            if line.startswith(f"nv_inference_{name}{label}")
        )

    def waiting(self, model, endpoint="protocol"):
        return self.counts(model, endpoint)[2]


def status_on(connection):
    response = http.client.HTTPResponse(connection)
    response.begin()
    response.read()
    return response.status


@contextmanager
def busy(caller):
    """A run goes on; what ends it, as the end of the block does: its client hangs up."""
    connection = caller.by_http("endless")
    until(lambda: running(caller.served) == 1)
    yield connection.close
    connection.close()
    assert caller.counts("endless")[0] == 0


@pytest.fixture(scope="module")
def served():
    with server("one") as process:
        yield process


@pytest.fixture
def caller(served):
    with ExitStack() as opened:
        yield Caller(served, opened)
    until(lambda: running(served) == 0)


def abandon_http(caller):
    connections = [caller.by_http("simple") for _ in range(COUNT)]
    until(lambda: caller.waiting("simple") == COUNT)
    for connection in connections:
        connection.close()


def abandon_grpc(caller):
    calls = [caller.by_grpc("simple") for _ in range(COUNT)]
    until(lambda: caller.waiting("simple") == COUNT)
    for call in calls:
        call.cancel()


def abandon_grpc_late(caller):
    calls = [caller.by_grpc("simple", timeout_s=0.3) for _ in range(COUNT)]
    codes = {call.code() for call in calls}
    assert codes == {grpc.StatusCode.DEADLINE_EXCEEDED}


@pytest.mark.parametrize("abandon", [abandon_http, abandon_grpc, abandon_grpc_late])
def test_abandoned_calls_never_run(caller, abandon):
    before = caller.counts("simple")
    with busy(caller):
        abandon(caller)
        until(lambda: caller.waiting("simple") == 0)
    until(lambda: running(caller.served) == 0)
    assert caller.by_grpc("simple").code() is grpc.StatusCode.OK
    assert caller.counts("simple")[0] == before[0] + 1


def test_calls_of_a_native_client_that_died_never_run(caller):
    before = caller.counts("simple", "native")
    with busy(caller):
        client = caller.by_socket("simple", COUNT)
        until(lambda: caller.waiting("simple", "native") == COUNT)
        client.kill()
        until(lambda: caller.waiting("simple", "native") == 0)
    until(lambda: running(caller.served) == 0)
    assert caller.counts("simple", "native")[0] == before[0]


def hung_up(caller):
    with caller.by_http("endless"):
        until(lambda: running(caller.served) == 1)


def cancelled(caller):
    call = caller.by_grpc("endless")
    until(lambda: running(caller.served) == 1)
    call.cancel()


def late(caller):
    assert caller.by_grpc("endless", timeout_s=1).code() is grpc.StatusCode.DEADLINE_EXCEEDED


def killed(caller):
    client = caller.by_socket("endless")
    until(lambda: running(caller.served) == 1)
    client.kill()


@pytest.mark.parametrize("abandon", [hung_up, cancelled, late, killed])
def test_a_run_whose_client_is_gone_is_stopped(caller, abandon):
    endpoint = "native" if abandon is killed else "protocol"
    before = caller.counts("endless", endpoint)
    abandon(caller)
    until(lambda: running(caller.served) == 0)
    assert caller.counts("endless", endpoint) == (before[0], before[1] + 1, 0)


def answered_by_http(caller):
    assert status_on(caller.by_http("simple")) == 200


def answered_by_grpc(caller):
    assert caller.by_grpc("simple").code() is grpc.StatusCode.OK


def answered_by_socket(caller):
    before = caller.counts("simple", "native")[0]
    caller.by_socket("simple")
    until(lambda: caller.counts("simple", "native")[0] == before + 1)


def counting(caller, permits):
    return caller.by_http("counting", {"n": ("INT64", np.array([permits]))})


def test_a_loop_that_was_quick_before_keeps_nothing_else_from_an_answer(caller):
    for _ in range(QUICK):
        assert status_on(counting(caller, 1)) == 200
    endless = counting(caller, 1 << 40)
    until(lambda: running(caller.served) == 1)
    endless.close()
    until(lambda: running(caller.served) == 0)
    assert caller.counts("counting")[:2] == (QUICK, 1)


@contextmanager
def flooded(caller):
    """One endless run goes on while many wait; what ends the one."""
    with busy(caller) as end, ExitStack() as leaving:
        for _ in range(FLOOD):
            leaving.callback(caller.by_http("endless").close)
            leaving.callback(caller.by_grpc("endless").cancel)
        native = caller.by_socket("endless", FLOOD)
        leaving.callback(native.wait)
        leaving.callback(native.kill)
        until(lambda: caller.waiting("endless") == 2 * FLOOD)
        until(lambda: caller.waiting("endless", "native") == FLOOD)
        yield end


@pytest.mark.parametrize("answered", [answered_by_http, answered_by_grpc, answered_by_socket])
def test_many_calls_of_a_model_delay_another_by_the_run_that_goes_on(caller, answered):
    endpoint = "native" if answered is answered_by_socket else "protocol"
    with flooded(caller) as end, ThreadPoolExecutor(1) as threads:
        one = threads.submit(answered, caller)
        until(lambda: caller.waiting("simple", endpoint) == 1)
        end()
        one.result(ANSWER_S)  # else another endless run has begun
        until(lambda: running(caller.served) == 1)


def test_hang_ups_take_no_other_clients_place():
    with server("one", "small") as served, ExitStack() as opened:
        caller = Caller(served, opened)
        holding = [caller.by_http("endless") for _ in range(2)]
        until(lambda: caller.waiting("endless") == 1)
        holding.append(caller.by_http("endless"))
        for connection in holding:
            connection.close()
        with caller.by_http("simple") as honest:
            assert status_on(honest) == 200
