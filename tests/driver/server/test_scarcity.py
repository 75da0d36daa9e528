"""Calls that grow the driver are refused while too little memory is left."""

import socket

import pytest

from tightship.driver.protocol import messages as m
from tightship.driver.protocol.codec import decode_reply
from tightship.driver.server import scarcity
from tightship.driver.server.scarcity import GROWING, NO_MEMORY, Scarcity
from tightship.driver.service.events import Malformed, Received, Tick
from tightship.driver.types.status import ErrorStatus

SHORT = ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT


@pytest.fixture
def scarce(monkeypatch):
    """Refusals of a driver that has no memory left."""
    monkeypatch.setattr(scarcity, "has_least", lambda: False)
    return Scarcity()


def test_a_call_that_grows_is_refused_with_its_files(scarce):
    file = object()
    event = Received(3, 5, m.Inspect(0), (file,))
    assert scarce.admitted(event) == Malformed(3, 5, NO_MEMORY, (file,), status=SHORT)


def test_calls_that_release_or_run_and_other_events_go_on(scarce):
    for event in (Received(3, 5, m.Free(2), ()), Tick()):
        assert scarce.admitted(event) is event
    assert m.Execute not in GROWING


def test_every_call_goes_on_while_there_is_memory():
    event = Received(3, 5, m.Inspect(0), ())
    assert Scarcity().admitted(event) is event


def test_a_new_client_is_told_and_disconnected(scarce, caplog):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        assert not scarce.admits(ours)
        reply = decode_reply(theirs.recv(4096)).message
        assert (reply.status, reply.message) == (SHORT, NO_MEMORY)
        assert theirs.recv(1) == b""
    scarce.end()
    assert [each.getMessage() for each in caplog.records] == [
        "Too little memory is left; clients and calls are refused.",
        "Too little memory is left: 1 were refused or ended.",
    ]
