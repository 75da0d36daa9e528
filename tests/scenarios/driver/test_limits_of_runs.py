"""Limits of executions: time after a deadline, places beside others, room in buffers."""

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import GF, IA, NONE, SHAPE, TYPES, Client, Places, conv, shaped
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import Launched
from tightship.driver.types.quota import Resource
from tightship.driver.types.settings import CONNECTION_LIMITS, Settings
from tightship.driver.types.status import ErrorStatus

KIND = TYPES["float32"]
SIZE = KIND.size_bytes
EXHAUSTED = ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT
LATE = ErrorStatus.MISSED_DEADLINE_TRANSIENT
MS = 1_000_000


def with_limit(resource, count):
    return Client(FakeServer(Settings(connection_limits=CONNECTION_LIMITS | {resource: count})))


def plain(client):
    places = Places(client.pool())
    return places.request([places.pooled(SIZE)], [places.pooled(SIZE)])


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_run_has_some_time_to_stop_before_its_client_is_notified(is_stopped):
    client = Client()
    server, model = client.server, client.model(conv(KIND))
    call = m.Execute(model, plain(client), deadline_ns=server.now_ns + 5 * MS)
    key = client.number, server.post(client.number, call)
    server.advance(6 * MS)
    assert server.stopped == {server.asked[0].execution}
    assert key not in server.replies
    if is_stopped:
        server.engine.status = LATE
        server.answer()
    else:
        server.advance(server.service.ledger.settings.grace_ns)
    assert server.replies[key].status is LATE


def test_a_client_has_so_many_executions():
    client = with_limit(Resource.EXECUTIONS, 3)
    model = client.model(conv(KIND))
    request = plain(client)
    created = [client(m.CreateExecution(model, request)).execution for _ in range(2)]
    launched = client(m.ExecuteFenced(model, request))
    assert isinstance(launched, Launched)
    for call in (m.Execute, m.ExecuteFenced, m.CreateExecution):
        assert client.status(call(model, request)) is EXHAUSTED
    assert client.status(m.ReleaseExecution(launched.execution)) is NONE
    assert client.status(m.Execute(model, request)) is NONE
    assert client.status(m.RunExecution(created[0])) is NONE


def test_a_buffer_grows_no_further_than_its_client_may():
    client = with_limit(Resource.BUFFER_BYTES, 2 * SIZE)
    model = client.model(conv(shaped(KIND, 0, *SHAPE[1:])))
    token = client.buffer((model,), inputs=(0,), outputs=(0,))
    places = Places(client.pool())
    request = places.request([places.pooled(SIZE, *SHAPE)], [places.buffer(token)])
    for length, expected in ((2, NONE), (3, EXHAUSTED), (1, NONE)):
        client.server.engine.produced = (length, *SHAPE[1:])
        assert client.status(m.Execute(model, request)) is expected
        held = client.status(m.CopyTo(token, client.pool(length * SIZE)))
        assert held is (NONE if expected is NONE else GF)
        if expected is NONE:
            assert client.status(m.CopyTo(token, client.pool(4 * SIZE))) is IA
