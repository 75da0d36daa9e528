"""Connections that are closed leave nothing in the server, however they ended."""

import http.client
import json
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import numpy as np
import pytest

grpc = pytest.importorskip("grpc")
pytest.importorskip("uvicorn")
from tests.driver.oip.raw_grpc import call_head, half_message, opening  # noqa: E402
from tests.driver.oip.serve_process import LENGTH, serve_neg, settles  # noqa: E402
from tightship.driver.client.client import Client  # noqa: E402
from tightship.driver.oip.schema import message_classes  # noqa: E402

SERVICE = "/inference.GRPCInferenceService"
X = np.ones(LENGTH, np.float32)
GROWTH_MAX = 8 << 20
FIRST = 10


def http_request(target="/v2/models/neg/infer"):
    tensor = {"name": "x", "shape": [LENGTH], "datatype": "FP32"}
    tensor["parameters"] = {"binary_data_size": X.nbytes}
    output = {"name": "y", "parameters": {"binary_data": True}}
    said = json.dumps({"inputs": [tensor], "outputs": [output]}).encode()
    head = (
        f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(said) + X.nbytes}\r\n"
        f"Inference-Header-Content-Length: {len(said)}\r\n\r\n"
    )
    return head.encode() + said + X.tobytes()


def waiting_at(port):
    """Number of connections to a port that its server has not accepted yet."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    listening = [line.split() for line in lines if line.split()[3] == "0A"]
    return sum(
        int(fields[4].split(":")[1], 16)
        for fields in listening
        if int(fields[1].split(":")[1], 16) == port
    )


def status_on(connection):
    response = http.client.HTTPResponse(connection)
    response.begin()
    response.read()
    return response.status


def http_answered(server):
    with server.connected(server.http_port) as connection:
        connection.sendall(http_request())
        assert status_on(connection) == 200


def http_refused(server):
    with server.connected(server.http_port) as connection:
        connection.sendall(http_request("/v2/models/nothing/infer"))
        assert status_on(connection) == 404


def http_hung_up(server):
    with server.connected(server.http_port) as connection:
        connection.sendall(http_request())


def http_half_a_body(server):
    with server.connected(server.http_port) as connection:
        connection.sendall(http_request()[:-1])


def grpc_request(model="neg"):
    request = message_classes()["ModelInferRequest"]
    message = request(model_name=model, raw_input_contents=[X.tobytes()])
    message.inputs.add(name="x", datatype="FP32", shape=[LENGTH])
    return message.SerializeToString()


def channel(server):
    own = (("grpc.use_local_subchannel_pool", 1),)
    return closing(grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}", options=own))


def grpc_answered(server):
    with channel(server) as opened:
        opened.unary_unary(f"{SERVICE}/ModelInfer")(grpc_request())


def grpc_refused(server):
    with channel(server) as opened, pytest.raises(grpc.RpcError):
        opened.unary_unary(f"{SERVICE}/ModelInfer")(grpc_request("nothing"))


def grpc_hung_up(server):
    """Within a stream: the next of its requests has been awaited."""
    with channel(server) as opened, suppress(grpc.RpcError):
        requests = iter([grpc_request()] * 20)
        answers = opened.stream_stream(f"{SERVICE}/ModelStreamInfer")(requests)
        next(answers)
        answers.cancel()


def grpc_half_a_body(server):
    with server.connected(server.grpc_port) as connection:
        connection.sendall(opening() + call_head("ModelInfer") + half_message(1 << 16))
        connection.recv(1)


def native(server):
    with Client(server.socket) as client, client.prepare_named("neg") as model:
        model.execute([X])


KINDS = (
    http_answered,
    http_refused,
    http_hung_up,
    http_half_a_body,
    grpc_answered,
    grpc_refused,
    grpc_hung_up,
    grpc_half_a_body,
    native,
)


@pytest.mark.parametrize("count", [64, pytest.param(1000, marks=pytest.mark.slow)])
def test_what_a_closed_connection_took_is_given_back(tmp_path, count):
    with serve_neg(tmp_path) as server:
        for kind in KINDS:
            for _ in range(FIRST):
                kind(server)
        limit, descriptors = server.anonymous_bytes + GROWTH_MAX, server.descriptor_count
        for kind in KINDS:
            for _ in range(count):
                kind(server)
            assert settles(lambda: server.anonymous_bytes, limit) <= limit, kind.__name__
        assert settles(lambda: server.descriptor_count, descriptors) <= descriptors
        assert "error" not in server.log


def test_neither_idle_nor_closed_connections_keep_large_bodies(tmp_path):
    body = bytes(32 << 20)
    head = f"POST /v2/nothing HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
    with serve_neg(tmp_path) as server, ExitStack() as opened:
        limit = server.anonymous_bytes + GROWTH_MAX
        for _ in range(3):
            connection = opened.enter_context(server.connected(server.http_port))
            connection.sendall(head.encode() + body)
            assert status_on(connection) == 404
        assert settles(lambda: server.anonymous_bytes, limit) <= limit
        opened.close()
        assert settles(lambda: server.anonymous_bytes, limit) <= limit


def test_clients_that_close_before_they_are_turned_away_leave_nothing(tmp_path):
    with (
        serve_neg(tmp_path, "--max-connections", "1") as server,
        server.connected(server.http_port) as busy,
    ):
        busy.sendall(http_request())
        assert status_on(busy) == 200
        busy.sendall(http_request()[:-1])
        before = server.descriptor_count
        with server.stopped():  # all are closed when it hears of the first
            for _ in range(20):
                with server.connected(server.http_port) as connection:
                    connection.setblocking(False)
                    connection.send(bytes(8 << 20))
            assert waiting_at(server.http_port) == 20
        assert settles(lambda: waiting_at(server.http_port), 0) == 0
        assert settles(lambda: server.descriptor_count, before) <= before
        busy.sendall(http_request()[-1:])
        assert status_on(busy) == 200
        assert server.log == ""
