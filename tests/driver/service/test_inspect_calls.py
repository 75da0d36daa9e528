"""Bytes that clients hold, as the service reports them."""

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import GF, IA, NONE, TYPES, Client, Places, conv
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import Inspected
from tightship.driver.service import events as ev
from tightship.driver.service.inspect_calls import snapshot_of
from tightship.driver.types.settings import Settings

KIND = TYPES["float32"]
SIZE = KIND.size_bytes
OPERATOR = 7


@pytest.fixture
def server():
    return FakeServer(Settings(operators=frozenset({OPERATOR})))


def holdings(server, client):
    """Return the report on one client."""
    clients = snapshot_of(server.service.ledger).clients
    return next(each for each in clients if each.caller.connection == client.number)


def begun(client):
    """The pool of an execution that runs."""
    model = client.model(conv(KIND))
    places = Places(client.pool(1 << 16))
    request = places.request([places.pooled(SIZE)], [places.pooled(SIZE)])
    client.server.post(client.number, m.Execute(model, request))
    return request.pools[0].identifier


def test_what_a_client_made_is_its_own(server):
    one, other = Client(server), Client(server)
    model, pool = one.model(conv(KIND)), one.pool(3 * SIZE)
    token = one.buffer([model], [0])
    mine = holdings(server, one)
    assert [(each.number, each.size_bytes) for each in mine.pools] == [(pool, 3 * SIZE)]
    held = [(each.token, each.size_bytes, each.is_filled) for each in mine.buffers]
    assert held == [(token, SIZE, False)]
    assert [each.number for each in mine.models] == [model]
    theirs = holdings(server, other)
    assert (theirs.pools, theirs.buffers, theirs.models) == ((), (), ())


def test_a_pool_that_was_forgotten_is_said_to_be_used_until_it_is_not(server):
    client = Client(server)
    pool = begun(client)
    assert [each.is_registered for each in holdings(server, client).pools] == [True]
    server.post(client.number, m.UnregisterPool(pool))
    assert [each.is_registered for each in holdings(server, client).pools] == [False]
    server.answer_all()
    assert holdings(server, client).pools == ()


def test_what_runs_for_a_client_that_is_gone_is_said_to_be_its(server):
    client = Client(server)
    pool = begun(client)
    server.happen(ev.Disconnected(client.number))
    gone = holdings(server, client)
    assert not gone.is_connected
    assert [each.number for each in gone.pools] == [pool]
    server.answer_all()
    assert snapshot_of(server.service.ledger).clients == ()
    assert server.is_clean()


def test_only_operators_may_ask(server):
    assert Client(server, user=OPERATOR)(m.Inspect(0), server.file()) == Inspected(1)
    assert Client(server, user=OPERATOR + 1).status(m.Inspect(0), server.file()) is IA
    assert not server.open_files


def test_a_snapshot_goes_to_a_file_that_can_be_written(server):
    client = Client(server, user=OPERATOR)
    assert client.status(m.Inspect(0), server.file(is_writable=False)) is IA
    assert client.status(m.Inspect(0), server.file(is_regular=False)) is IA
    assert client.status(m.Inspect(1), server.file()) is IA
    assert not server.open_files
    server.engine.status = GF
    assert client.status(m.Inspect(0), server.file()) is GF
    server.engine.status = NONE
    assert client.status(m.Inspect(0), server.file()) is NONE
