"""Clients that call too often, by HTTP, by gRPC and in streams; and others beside them."""

import json
import queue
import time
from contextlib import ExitStack, closing
from functools import partial

import numpy as np
import pytest

pytest.importorskip("uvicorn")
http_client = pytest.importorskip("tritonclient.http")
grpc_client = pytest.importorskip("tritonclient.grpc")
import grpc  # noqa: E402
from tritonclient.utils import InferenceServerException  # noqa: E402

from tests.driver.oip.serve_process import LENGTH, PATIENCE_S, serve_neg  # noqa: E402

CLIENTS = ("http", "grpc", "stream", "raw", "other")
LIMIT = 3


def given(name):
    return {"authorization": f"Bearer the-token-of-{name}-0123456789"}


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """A server whose clients may make three calls an hour each."""
    folder = tmp_path_factory.mktemp("limited")
    tokens = folder / "tokens"
    tokens.write_text("".join(f"{name} {given(name)['authorization'][7:]}\n" for name in CLIENTS))
    tokens.chmod(0o600)
    with serve_neg(folder, "--token-file", tokens, "--rate-limit", f"{LIMIT}/h") as serve:
        yield serve


def tensor(module):
    found = module.InferInput("x", [LENGTH], "FP32")
    found.set_data_from_numpy(np.zeros(LENGTH, np.float32))
    return found


@pytest.mark.parametrize("name", ["http", "grpc"])
def test_a_client_that_calls_too_often_is_refused_and_others_are_not(limited, name):
    module = {"http": http_client, "grpc": grpc_client}[name]
    place = getattr(limited, name)
    with module.InferenceServerClient(place) as client:
        call = partial(client.infer, "neg", [tensor(module)])
        for _ in range(LIMIT):
            call(headers=given(name))
        for _ in range(2):
            with pytest.raises(InferenceServerException, match="more than 3 calls an hour; try"):
                call(headers=given(name))
        assert client.is_server_ready(headers=given(name))  # which counts nothing
        if name == "http":
            client.get_server_metadata(headers=given("other"))


def test_a_refusal_says_when_to_call_again_and_keeps_the_connection(limited):
    said = given("raw")
    with closing(limited.connected(limited.http_port)) as connection:
        for status in [200] * LIMIT + [429, 429]:
            head = f"GET /v2 HTTP/1.1\r\nAuthorization: {said['authorization']}\r\n\r\n"
            connection.sendall(head.encode())
            text = connection.recv(1 << 16).decode()
            assert text.startswith(f"HTTP/1.1 {status} ")
    headers = dict(line.split(": ", 1) for line in text.split("\r\n\r\n")[0].split("\r\n")[1:])
    assert 1000 < int(headers["Retry-After"]) <= 1200
    assert "try again in" in json.loads(text.split("\r\n\r\n")[1])["error"]
    assert "Connection" not in headers
    with grpc.insecure_channel(limited.grpc) as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ServerMetadata")
        with pytest.raises(grpc.RpcError) as refused:
            call(b"", timeout=20, metadata=list(said.items()))
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    trailers = dict(refused.value.trailing_metadata())
    assert 1e6 < int(trailers["grpc-retry-pushback-ms"]) <= 1.2e6


def test_each_request_of_a_stream_counts(limited):
    seen = queue.Queue()

    def keep(result, error):
        seen.put((result, error))

    with grpc_client.InferenceServerClient(limited.grpc) as client:
        client.start_stream(keep, headers=given("stream"))
        for _ in range(LIMIT + 2):
            client.async_stream_infer("neg", [tensor(grpc_client)])
        found = [seen.get(timeout=20) for _ in range(LIMIT + 2)]
        client.stop_stream()
    errors = [str(error) if error else "" for _, error in found]
    assert errors[:LIMIT] == [""] * LIMIT
    assert all("more than 3 calls an hour" in each for each in errors[LIMIT:])


def test_a_client_whose_calls_had_too_many_bytes_waits(tmp_path):
    with serve_neg(tmp_path, "--byte-limit", "768KiB/h") as limited:
        with grpc_client.InferenceServerClient(limited.grpc) as client:
            for _ in range(2):  # of 512 KiB each, by request and response
                client.infer("neg", [tensor(grpc_client)])
            with pytest.raises(InferenceServerException, match="more than 786432 bytes an hour"):
                client.infer("neg", [tensor(grpc_client)])
        status, headers, body = limited.ask("GET", "/v2")
        assert (status, b"bytes an hour" in body) == (429, True)
        assert 1100 < int(headers["Retry-After"]) <= 1210
        assert limited.get("/v2/health/ready")[0] == 200


def test_a_client_has_so_many_calls_at_once_by_http_and_grpc_together(tmp_path):
    with serve_neg(tmp_path, "--concurrency-limit", "2") as limited, ExitStack() as opened:
        head = b"POST /v2/models/neg/infer HTTP/1.1\r\nContent-Length: 1048576\r\n\r\n{"
        held = [
            opened.enter_context(closing(limited.connected(limited.http_port))) for _ in range(2)
        ]
        for each in held:
            each.sendall(head)
        until(lambda: limited.ask("GET", "/v2")[0] == 429)
        client = opened.enter_context(grpc_client.InferenceServerClient(limited.grpc))
        with pytest.raises(InferenceServerException, match="more than 2 calls at once"):
            client.infer("neg", [tensor(grpc_client)])
        assert client.is_server_live()
        held.pop().close()
        until(lambda: limited.ask("GET", "/v2")[0] == 200)
        client.infer("neg", [tensor(grpc_client)])


def until(is_so):
    stop = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < stop
        time.sleep(0.01)
