"""TLS and tokens: unmodified clients of Triton, and clients that should be kept out."""

import http.client
import json
import socket
import ssl
import time
from contextlib import closing, suppress
from functools import partial
from types import MappingProxyType

import numpy as np
import pytest

pytest.importorskip("uvicorn")
http_client = pytest.importorskip("tritonclient.http")
grpc_client = pytest.importorskip("tritonclient.grpc")
import grpc  # noqa: E402
from tritonclient.utils import InferenceServerException  # noqa: E402

from tests.driver.oip.admission.pem import certificate  # noqa: E402
from tests.driver.oip.serve_process import LENGTH, PATIENCE_S, serve_neg  # noqa: E402

TOKEN = "the-token-of-alice-0123456789"
GIVEN = MappingProxyType({"authorization": f"Bearer {TOKEN}"})
WRONG = MappingProxyType({"authorization": "Bearer the-token-of-mallory-01234"})
ELSEWHERE = ("127.0.0.2", 0)
"""Address of a client whose refusals are logged for themselves."""
X = np.arange(LENGTH, dtype=np.float32)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A server with TLS and a token; the path of its certificate is `chain`."""
    folder = tmp_path_factory.mktemp("secured")
    chain, key = certificate(folder)
    tokens = folder / "tokens"
    tokens.write_text(f"alice {TOKEN}\n")
    tokens.chmod(0o600)
    options = ("--tls-cert", chain, "--tls-key", key, "--token-file", tokens, "--log", "info")
    with serve_neg(folder, *options) as serve:
        serve.chain = chain
        yield serve


def client_of(module, secured):
    """A client of Triton that trusts the server's certificate alone."""
    if module is grpc_client:
        return module.InferenceServerClient(
            secured.grpc, ssl=True, root_certificates=str(secured.chain)
        )
    trust = {"ssl_context_factory": lambda: ssl.create_default_context(cafile=secured.chain)}
    return module.InferenceServerClient(secured.http, ssl=True, **trust)


def inferred(module, client, headers):
    given = module.InferInput("x", [LENGTH], "FP32")
    given.set_data_from_numpy(X)
    return client.infer("neg", [given], headers=headers).as_numpy("y")


@pytest.mark.parametrize("module", [http_client, grpc_client], ids=["http", "grpc"])
def test_an_unmodified_client_calls_with_tls_and_a_token(secured, module):
    with client_of(module, secured) as client:
        for _ in range(3):
            assert np.array_equal(inferred(module, client, headers=dict(GIVEN)), -X)
        assert client.get_model_metadata("neg", headers=dict(GIVEN))


@pytest.mark.parametrize("module", [http_client, grpc_client], ids=["http", "grpc"])
@pytest.mark.parametrize("given", [None, WRONG], ids=["none", "wrong"])
def test_without_a_valid_token_only_health_is_answered(secured, module, given):
    headers = None if given is None else dict(given)
    with client_of(module, secured) as client:
        assert client.is_server_live(headers=headers)
        assert client.is_server_ready(headers=headers)
        for call in (
            lambda: inferred(module, client, headers=headers),
            lambda: client.get_model_metadata("neg", headers=headers),
            lambda: client.get_server_metadata(headers=headers),
            lambda: client.unload_model("neg", headers=headers),
        ):
            with pytest.raises(InferenceServerException, match="token") as refused:
                call()
            assert refused.value.status() in {"401", "StatusCode.UNAUTHENTICATED"}


def _endless():
    """Messages of which none ever comes."""
    time.sleep(PATIENCE_S)
    yield b""


def _keep(seen, result, error):  # noqa: ARG001  named by the client
    seen.append(error)


def test_the_server_says_that_its_addresses_want_tls(secured):
    assert secured.schemes == {"https", "grpcs"}


def test_a_stream_needs_the_token(secured):
    for headers, is_admitted in ((GIVEN, True), (WRONG, False)):
        seen = []
        with client_of(grpc_client, secured) as client:
            called = partial(_keep, seen)
            client.start_stream(called, headers=dict(headers))
            given = grpc_client.InferInput("x", [LENGTH], "FP32")
            given.set_data_from_numpy(X)
            with suppress(InferenceServerException):  # the stream may have ended already
                client.async_stream_infer("neg", [given])
            until = time.monotonic() + 20
            while not seen and time.monotonic() < until:
                time.sleep(0.01)
            with suppress(InferenceServerException):
                client.stop_stream()
        assert (seen[0] is None) is is_admitted


def test_the_health_service_tells_of_models_with_a_token_only(secured):
    trust = grpc.ssl_channel_credentials(secured.chain.read_bytes())
    given = list(GIVEN.items())
    with grpc.secure_channel(secured.grpc, trust) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        listed = channel.unary_unary("/grpc.health.v1.Health/List")
        assert check(b"", timeout=20) == b"\x08\x01"
        with pytest.raises(grpc.RpcError, match="at most 4096 bytes"):
            check(b"\x0a\x83\x20" + b"n" * 4099, timeout=20)
        live = channel.stream_unary("/inference.GRPCInferenceService/ServerLive")
        assert live(_endless(), timeout=20) == b"\x08\x01"  # whose message is not waited for
        about_neg = b"\x0a\x03neg"
        assert check(about_neg, timeout=20, metadata=given) == b"\x08\x01"
        assert b"neg" in listed(b"", timeout=20, metadata=given)
        for call, message in ((check, about_neg), (check, b"\x0a\x03nag"), (listed, b"")):
            with pytest.raises(grpc.RpcError) as refused:
                call(message, timeout=20)
            assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def connected(secured):
    context = ssl.create_default_context(cafile=secured.chain)
    port = secured.http_port
    return closing(http.client.HTTPSConnection("localhost", port, timeout=20, context=context))


@pytest.mark.parametrize(
    ("method", "target", "body", "is_kept"),
    [
        ("GET", "/", None, True),
        ("GET", "/metrics", None, True),
        ("GET", "/status", None, True),
        ("GET", "/v2", None, True),
        ("GET", "/v2/models/neg/ready", None, True),
        ("GET", "/v2/health/../models/neg", None, True),
        ("GET", "/v2/health/live?x", None, True),
        ("GET", "//v2/health/live", None, True),
        ("POST", "/v2/health/live", b"", True),
        ("GET", "/v2/health/live", b"body", True),
        ("GET", "/v2/none", None, True),
        ("POST", "/v2/models/neg/infer", b"{}", True),
        ("POST", "/v2/models/neg/infer", bytes(1 << 20), False),
    ],
)
def test_every_other_path_is_refused_before_its_body_is_used(
    secured, method, target, body, is_kept
):
    with connected(secured) as connection:
        connection.request(method, target, body)
        response = connection.getresponse()
        assert response.status == 401
        assert response.headers["WWW-Authenticate"] == 'Bearer realm="tightship"'
        assert "Authorization: Bearer TOKEN" in json.loads(response.read())["error"]
        assert (response.headers["Connection"] != "close") is is_kept
        if is_kept:
            connection.request("GET", "/v2", headers=dict(GIVEN))
            assert connection.getresponse().status == 200


def test_a_request_that_asks_first_is_refused_and_its_connection_ends(secured):
    context = ssl.create_default_context(cafile=secured.chain)
    with (
        socket.create_connection(("127.0.0.1", secured.http_port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        head = b"POST /v2/models/neg/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
        connection.sendall(head + b"Expect: 100-continue\r\n\r\n")
        said = b"".join(iter(lambda: connection.recv(4096), b""))
    assert said.startswith(b"HTTP/1.1 401 Unauthorized\r\n")
    assert b"100 Continue" not in said
    assert b"Connection: close" in said


def asked(connection):
    connection.request("GET", "/v2/health/live", headers=dict(GIVEN))
    return connection.getresponse()


def test_plain_text_and_other_certificates_fail_and_are_logged_without_secrets(secured):
    for kind, expected in (
        (http.client.HTTPConnection, (http.client.HTTPException, OSError)),
        (http.client.HTTPSConnection, ssl.SSLError),
    ):
        where = {"timeout": 20, "source_address": ELSEWHERE}
        with (
            closing(kind("127.0.0.1", secured.http_port, **where)) as connection,
            pytest.raises(expected),
        ):
            asked(connection)
    with connected(secured) as connection:
        connection.request("GET", "/v2/health/live")
        assert connection.getresponse().status == 200
    log = secured.log
    assert log.count("http:127.0.0.2:0: a connection is refused: ") == 2
    assert "Traceback" not in log
    assert "the-token-of" not in log  # neither the valid one nor others
