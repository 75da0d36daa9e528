"""Requests that come again with their head and body apart, as most clients send them."""

import time
from contextlib import suppress

import pytest

pytest.importorskip("uvicorn")
from tests.driver.oip.http_setting import Serving, answer_on, ask
from tightship.driver.oip.http.connection import HttpConnection
from tightship.driver.oip.http.known_requests import KNOWN_BYTES_MAX, KNOWN_MAX, KnownRequests
from tightship.driver.oip.limits import EndpointLimits

APART_S = 0.02
"""Seconds after which bytes are read by themselves."""
WARM = 6


@pytest.fixture
def serving(tmp_path, monkeypatch):
    found = Serving(tmp_path, monkeypatch)
    yield found
    found.close()


def apart(connection, request):
    head, end, body = request.partition(b"\r\n\r\n")
    connection.sendall(head + end)
    time.sleep(APART_S)
    return ask(connection, body)


def warmed(serving, connection):
    """Send a request until it is known, and return it."""
    request = serving.request()
    answers = [apart(connection, request) for _ in range(WARM)]
    assert answers == answers[:1] * WARM
    assert answers[0][0] == 200
    return request


def test_a_known_request_is_not_parsed_again(serving, monkeypatch):
    parsed = []
    feed = HttpConnection.feed

    def seen(connection, data):
        parsed.append(data)
        feed(connection, data)

    with serving.connected() as connection:
        request = warmed(serving, connection)
        monkeypatch.setattr(HttpConnection, "feed", seen)
        assert [apart(connection, request)[0] for _ in range(3)] == [200] * 3
        assert parsed == []
        other = serving.request(taken=32)
        assert len(other) == len(request)
        assert apart(connection, other)[0] == 200
        assert b"".join(parsed) == other
    assert serving.count().success_count == WARM + 4


def test_a_head_without_its_body_is_refused_in_time(tmp_path, monkeypatch):
    serving = Serving(tmp_path, monkeypatch, EndpointLimits(transfer_s=0.5, drain_s=5.0))
    try:
        with serving.connected() as connection:
            head = warmed(serving, connection).partition(b"{")[0]
            connection.sendall(head)
            assert answer_on(connection)[0] == 408
        with serving.connected() as connection:
            assert ask(connection, serving.request())[0] == 200
    finally:
        serving.close()


def test_a_client_that_leaves_after_a_head_harms_none(serving):
    for _ in range(3):
        with serving.connected() as connection:
            head = warmed(serving, connection).partition(b"{")[0]
            connection.sendall(head)
    with serving.connected() as connection:
        assert ask(connection, serving.request())[0] == 200


def test_a_head_that_has_come_is_answered_before_the_end(serving):
    with serving.connected() as connection:
        head, _, body = warmed(serving, connection).partition(b"{")
        connection.sendall(head)
        time.sleep(APART_S)
        serving.server.begin_stop()
        time.sleep(APART_S)
        assert ask(connection, b"{" + body)[0] == 200
        with suppress(ConnectionError):
            assert connection.recv(1) == b""


def test_a_client_that_waits_to_be_asked_for_the_body_is_asked_each_time(serving):
    with serving.connected() as connection:
        request = warmed(serving, connection)
        head, _, body = request.replace(
            b"Host: localhost", b"Host: localhost\r\nExpect: 100-continue"
        ).partition(b"{")
        for _ in range(WARM):
            connection.sendall(head)
            assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            assert ask(connection, b"{" + body)[0] == 200


def test_a_large_body_behind_a_head_is_read_as_others_are(serving):
    with serving.connected() as connection:
        padded = serving.request().replace(b'{"inputs"', b" " * KNOWN_BYTES_MAX + b'{"inputs"')
        _, _, body = padded.partition(b"\r\n\r\n")
        head = f"POST /v2/models/neg/infer HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
        whole = head.encode() + body
        assert [apart(connection, whole)[0] for _ in range(WARM)] == [200] * WARM


def test_only_so_many_are_known():
    known = KnownRequests()
    for number in range(KNOWN_MAX + 1):
        known.keep(b"POST /%d\r\n\r\n{}" % number, None)
    assert not known.begin_with(b"POST /0\r\n\r\n")
    assert known.begin_with(b"POST /%d\r\n\r\n" % KNOWN_MAX)
    assert not known.begin_with(b"POST /%d\r\n\r\n{}" % KNOWN_MAX)


def test_a_known_request_is_refused_once_the_server_ends_runs(serving):
    with serving.connected() as connection:
        request = warmed(serving, connection)
        serving.endpoint.abandon()
        assert ask(connection, request)[0] == 503
