"""Handshakes of TLS: those that wait exclude no other client, and a new certificate is used."""

import asyncio
import os
import socket
import ssl
import time
from contextlib import ExitStack

import pytest

pytest.importorskip("uvicorn")
from tests.driver.oip.admission.pem import certificate
from tests.driver.oip.http_setting import Serving, ask
from tightship.driver.oip.admission import watched_files
from tightship.driver.oip.admission.certificate import Certificate
from tightship.driver.oip.admission.gate import Entry
from tightship.driver.oip.http import arrivals, entrance, serving
from tightship.driver.oip.http.connection import HttpConnection
from tightship.driver.oip.limits import EndpointLimits

LIVE = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(params=["asyncio", "uvloop"])
def secured(request, tmp_path, monkeypatch):
    """A server with TLS in this process, on either event loop, for two clients and four more."""
    if request.param == "asyncio":
        monkeypatch.setattr(serving, "new_event_loop", asyncio.new_event_loop)
    else:
        pytest.importorskip("uvloop")
    monkeypatch.setattr(entrance, "EXTRA", 2)
    monkeypatch.setattr(watched_files, "PERIOD_S", 0.0)
    files = certificate(tmp_path)
    entry = Entry(certificate=Certificate(*files))
    limits = EndpointLimits(connections_max=2, drain_s=5.0)
    found = Serving(tmp_path, monkeypatch, limits, entry)
    found.chain, found.key = files
    yield found
    found.close()


def live(secured):
    """Call with a connection of its own."""
    context = ssl.create_default_context(cafile=secured.chain)
    with (
        socket.create_connection(("127.0.0.1", secured.server.port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        return ask(connection, LIVE), connection.getpeercert()["subject"][0][0][1]


def test_clients_that_begin_no_handshake_exclude_no_other(secured):
    assert live(secured)[0] == (200, {"live": True})
    before = len(os.listdir("/proc/self/fd"))
    with ExitStack() as silent:
        for _ in range(6):
            silent.enter_context(socket.create_connection(("127.0.0.1", secured.server.port)))
        time.sleep(0.4)  # of which each handshake has 0.25 s
        assert live(secured)[0] == (200, {"live": True})
    until = time.monotonic() + 10
    while len(os.listdir("/proc/self/fd")) > before and time.monotonic() < until:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/fd")) <= before  # connections without a handshake are closed


def test_a_client_whose_handshake_has_just_ended_is_served_although_others_need_room(
    secured, monkeypatch
):
    """Room is made between the handshake's end and that of the task that makes the connection."""
    monkeypatch.setattr(arrivals, "RECENT_NS", 0)
    waiting, ended = [], []
    add, made = arrivals.Arrivals.add, HttpConnection.connection_made

    def noted(found, *given):
        waiting.append(found)
        add(found, *given)

    def crowded(connection, transport):
        made(connection, transport)
        ended.append(waiting[-1].make_room())

    monkeypatch.setattr(arrivals.Arrivals, "add", noted)
    monkeypatch.setattr(HttpConnection, "connection_made", crowded)
    assert live(secured)[0] == (200, {"live": True})
    assert ended == [False]


def test_new_connections_have_a_replaced_certificate(secured, tmp_path):
    assert live(secured)[1] == "server"
    chain, key = certificate(tmp_path, "new")
    chain.replace(secured.chain)
    key.replace(secured.key)
    assert live(secured)[1] == "new"
