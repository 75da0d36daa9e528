"""Who holds which bytes, as the service knows it."""

import pytest

from tests.driver.fake_rim import Rim
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
def rim():
    return Rim(Settings(operators=frozenset({OPERATOR})))


def holdings(rim, client):
    """What is said of one client."""
    clients = snapshot_of(rim.service.ledger).clients
    return next(each for each in clients if each.caller.connection == client.number)


def begun(client):
    """The pool of an execution that runs."""
    model = client.model(conv(KIND))
    places = Places(client.pool(1 << 16))
    request = places.request([places.pooled(SIZE)], [places.pooled(SIZE)])
    client.rim.post(client.number, m.Execute(model, request))
    return request.pools[0].identifier


def test_what_a_client_made_is_its_own(rim):
    one, other = Client(rim), Client(rim)
    model, pool = one.model(conv(KIND)), one.pool(3 * SIZE)
    token = one.buffer([model], [0])
    mine = holdings(rim, one)
    assert [(each.number, each.size_bytes) for each in mine.pools] == [(pool, 3 * SIZE)]
    held = [(each.token, each.size_bytes, each.is_filled) for each in mine.buffers]
    assert held == [(token, SIZE, False)]
    assert [each.number for each in mine.models] == [model]
    theirs = holdings(rim, other)
    assert (theirs.pools, theirs.buffers, theirs.models) == ((), (), ())


def test_a_pool_that_was_forgotten_is_said_to_be_used_until_it_is_not(rim):
    client = Client(rim)
    pool = begun(client)
    assert [each.is_registered for each in holdings(rim, client).pools] == [True]
    rim.post(client.number, m.UnregisterPool(pool))
    assert [each.is_registered for each in holdings(rim, client).pools] == [False]
    rim.answer_all()
    assert holdings(rim, client).pools == ()


def test_what_runs_for_a_client_that_is_gone_is_said_to_be_its(rim):
    client = Client(rim)
    pool = begun(client)
    rim.happen(ev.Disconnected(client.number))
    gone = holdings(rim, client)
    assert not gone.is_connected
    assert [each.number for each in gone.pools] == [pool]
    rim.answer_all()
    assert snapshot_of(rim.service.ledger).clients == ()
    assert rim.is_clean()


def test_only_operators_may_ask(rim):
    assert Client(rim, user=OPERATOR)(m.Inspect(0), rim.file()) == Inspected(1)
    assert Client(rim, user=OPERATOR + 1).status(m.Inspect(0), rim.file()) is IA
    assert not rim.open_files


def test_a_snapshot_goes_to_a_file_that_can_be_written(rim):
    client = Client(rim, user=OPERATOR)
    assert client.status(m.Inspect(0), rim.file(is_writable=False)) is IA
    assert client.status(m.Inspect(0), rim.file(is_regular=False)) is IA
    assert client.status(m.Inspect(1), rim.file()) is IA
    assert not rim.open_files
    rim.engine.status = GF
    assert client.status(m.Inspect(0), rim.file()) is GF
    rim.engine.status = NONE
    assert client.status(m.Inspect(0), rim.file()) is NONE
