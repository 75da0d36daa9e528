"""A server that is killed under load: clients go on with the next one at its addresses."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("uvicorn")
http = pytest.importorskip("tritonclient.http")
grpc = pytest.importorskip("tritonclient.grpc")
from geventhttpclient.response import HTTPConnectionClosed  # noqa: E402
from tritonclient.utils import InferenceServerException  # noqa: E402

from tests.driver.oip.serve_process import LENGTH, PATIENCE_S, serve_neg  # noqa: E402
from tightship.driver.client.client import Client  # noqa: E402

RETRY_S = 0.05
SERVERS = 3


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def ask(module, address, answers, enough):
    """Ask one unmodified client again and again, whatever becomes of the server."""
    x = np.arange(LENGTH, dtype=np.float32)
    given = module.InferInput("x", [LENGTH], "FP32")
    given.set_data_from_numpy(x)
    with module.InferenceServerClient(address) as client:
        while not enough.is_set():
            try:
                found = client.infer("neg", [given])
            except (OSError, HTTPConnectionClosed, InferenceServerException):
                time.sleep(RETRY_S)  # it has been killed, or does not listen yet
                continue
            assert np.array_equal(found.as_numpy("y"), -x)
            answers.append(None)


def until_more(answers):
    """Wait until every client has ten more answers."""
    wanted, end = [len(each) + 10 for each in answers], time.monotonic() + PATIENCE_S
    while any(len(each) < count for each, count in zip(answers, wanted, strict=True)):
        assert time.monotonic() < end, [len(each) for each in answers]
        time.sleep(RETRY_S)


def test_clients_of_a_killed_server_go_on_with_the_next(tmp_path):
    ports = free_port(), free_port()
    web, calls = (f"127.0.0.1:{port}" for port in ports)
    options = ["--http", ports[0], "--grpc", ports[1], "--socket", tmp_path / "driver.sock"]
    answers, enough = ([], [], []), threading.Event()
    with ThreadPoolExecutor(len(answers)) as clients:
        kinds = (grpc, calls), (http, web), (http, web)
        asking = [
            clients.submit(ask, *kind, found, enough)
            for kind, found in zip(kinds, answers, strict=True)
        ]
        try:
            for number in range(SERVERS):
                with serve_neg(tmp_path, *options) as server:
                    assert server.http_port == ports[0]
                    until_more(answers)
                    with Client(str(tmp_path / "driver.sock")) as client:
                        assert client.prepare_named("neg")
                    if number < SERVERS - 1:
                        server.process.kill()
                        server.process.wait(PATIENCE_S)
        finally:
            enough.set()
        for each in asking:
            each.result(PATIENCE_S)
