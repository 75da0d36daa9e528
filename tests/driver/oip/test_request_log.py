"""Ids of requests, and the lines of a log in JSON, whatever clients send."""

import json
import logging
import time
from contextlib import closing

import pytest

pytest.importorskip("uvicorn")
grpc = pytest.importorskip("grpc")
from tests.driver.oip.serve_process import serve_neg  # noqa: E402
from tightship.driver.oip.request_log import FIELDS, begin, log_line  # noqa: E402

TOKEN = "the-token-of-alice-0123456789"
GIVEN = {"authorization": f"Bearer {TOKEN}"}


def begun(given, call="call", sinks=()):
    return begin(call, {} if given is None else {"x-request-id": given}, sinks)


@pytest.mark.parametrize("given", ["seven", "A1._~+/=:@-", "x" * 128])
def test_a_valid_id_is_taken(given):
    assert begun(given).request_id == given


@pytest.mark.parametrize("given", [None, "", "x" * 129, "a b", 'a"b', "a\nb", "ä", "a\0", "{}"])
def test_another_one_is_replaced_by_a_new_one(given):
    first, second = (begun(given).request_id for _ in range(2))
    assert first != second
    assert len(first) == 32
    assert first.isalnum()


def test_an_exchange_is_one_record(caplog):
    caplog.set_level(logging.INFO)
    exchange = begun("seven", "GET /" + "x" * 1000, (log_line,))
    exchange.client, exchange.account, exchange.status = "http:10.1.2.3:4", "token:alice", 200
    exchange.end()
    fields = getattr(caplog.records[0], FIELDS)
    assert fields["request_id"] == "seven"
    assert fields["status"] == 200
    assert len(fields["call"]) == 200
    assert fields["duration_ms"] >= 0


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A server with a token and a log in JSON."""
    folder = tmp_path_factory.mktemp("logged")
    tokens = folder / "tokens"
    tokens.write_text(f"alice {TOKEN}\n")
    tokens.chmod(0o600)
    options = ("--token-file", tokens, "--log-format", "json", "--log", "info")
    with serve_neg(folder, *options) as serve:
        yield serve


def lines_of(logged, request_id, count=1):
    """The lines of a request, once there are so many."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        lines = [json.loads(line) for line in logged.log.splitlines()]
        found = [line for line in lines if line.get("request_id") == request_id]
        if len(found) >= count:
            return found
        time.sleep(0.01)
    raise AssertionError(logged.log)


def test_a_request_has_the_id_that_it_came_with_and_one_line(logged):
    target = "/v2/models/neg?secret=7"
    status, headers, body = logged.ask("GET", target, **GIVEN, **{"X-Request-ID": "first"})
    assert (status, headers["X-Request-ID"]) == (200, "first")
    (line,) = lines_of(logged, "first")
    assert line["call"] == "GET /v2/models/neg"
    assert (line["level"], line["status"], line["account"]) == ("info", 200, "token:alice")
    assert line["client"].startswith("http:127.0.0.1:")
    assert line["sent_bytes"] == len(body)
    assert {"time", "duration_ms", "received_bytes"} <= set(line)


def test_a_request_without_an_id_gets_one(logged):
    status, headers, _ = logged.ask("GET", "/v2/health/live")
    assert status == 200
    (line,) = lines_of(logged, headers["X-Request-ID"])
    assert line["account"] == "127.0.0.1"


def test_a_refused_request_has_an_id_too_and_its_reason_is_logged(logged):
    body = b"x" * 100
    said = {"X-Request-ID": "third", "Authorization": "Bearer wrong-token-of-mallory"}
    status, headers, _ = logged.ask("POST", "/v2/models/neg/infer", body, **said)
    assert (status, headers["X-Request-ID"]) == (401, "third")
    refusal, line = lines_of(logged, "third", 2)
    assert "a token that is not valid" in refusal["message"]
    assert line["status"] == 401


def test_hostile_headers_make_no_other_lines(logged):
    with closing(logged.connected(logged.http_port)) as connection:
        evil = b'X-Request-ID: a"}\\n{"level":"error\r\nUser-Agent: \xff\r\n'
        connection.sendall(b'GET /v2/"}\\n%0a HTTP/1.1\r\nHost: localhost\r\n' + evil)
        connection.sendall(b"X-Request-ID: b\r\nConnection: close\r\n\r\n")
        said = b"".join(iter(lambda: connection.recv(4096), b""))
    assert said.startswith(b"HTTP/1.1 401 ")
    request_id = said.partition(b"X-Request-ID: ")[2].partition(b"\r\n")[0].decode()
    assert len(request_id) == 32
    assert lines_of(logged, request_id, 2)[1]["call"].startswith('GET /v2/"}\\n')
    assert all(isinstance(json.loads(line), dict) for line in logged.log.splitlines())
    assert logged.log.isascii()


def test_calls_of_grpc_have_ids_and_lines(logged):
    with grpc.insecure_channel(logged.grpc) as channel:
        ready = channel.unary_unary("/inference.GRPCInferenceService/ServerReady")
        said = [("x-request-id", "fourth"), *GIVEN.items()]
        answer, call = ready.with_call(b"", timeout=20, metadata=said)
        assert dict(call.trailing_metadata())["x-request-id"] == "fourth"
        (line,) = lines_of(logged, "fourth")
        assert (line["call"], line["status"]) == ("ServerReady", "OK")
        assert line["account"] == "127.0.0.1"  # this call needs no token, so it is not read
        assert line["sent_bytes"] == len(answer)
        listed = channel.unary_unary("/inference.GRPCInferenceService/ModelMetadata")
        for metadata, code in (([], "UNAUTHENTICATED"), (list(GIVEN.items()), "NOT_FOUND")):
            with pytest.raises(grpc.RpcError) as refused:
                listed(b"\x0a\x01x", timeout=20, metadata=metadata)
            request_id = dict(refused.value.trailing_metadata())["x-request-id"]
            assert lines_of(logged, request_id, 2)[1]["status"] == code
    assert "token-of" not in logged.log
