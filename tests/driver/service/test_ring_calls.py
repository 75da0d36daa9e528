"""Files that may become the ring of a connection."""

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import IA, NONE, Client
from tightship.driver.protocol import messages as m
from tightship.driver.types.attachment import FenceState
from tightship.driver.types.settings import Settings


def offered(client, size_bytes=m.RING_BYTES, **facts):
    return client.status(m.OpenRing(0), client.server.file(size_bytes, **facts))


@pytest.fixture
def client():
    return Client(FakeServer())


def test_a_connection_has_one_ring_and_its_file_is_closed_at_once(client):
    assert offered(client) is NONE
    assert client.server.rings == {client.number}
    assert offered(client) is IA
    assert not client.server.open_files
    other = Client(client.server)
    assert offered(other) is NONE
    assert client.server.rings == {client.number, other.number}


@pytest.mark.parametrize(
    ("size_bytes", "facts"),
    [
        (m.RING_BYTES - 1, {}),
        (m.RING_BYTES + 1, {}),
        (m.RING_BYTES, {"is_shrink_sealed": False}),
        (m.RING_BYTES, {"is_write_sealed": True}),
        (m.RING_BYTES, {"is_writable": False}),
        (m.RING_BYTES, {"is_readable": False}),
        (m.RING_BYTES, {"is_regular": False, "fence": FenceState.PENDING}),
    ],
    ids=["short", "long", "may shrink", "sealed", "read only", "write only", "a pipe"],
)
def test_any_other_file_is_refused(client, size_bytes, facts):
    assert offered(client, size_bytes, **facts) is IA
    assert not client.server.rings
    assert not client.server.open_files
    assert offered(client) is NONE


def test_a_ring_needs_a_file_and_a_driver_that_offers_it(client):
    assert client.status(m.OpenRing(0)) is IA
    assert offered(Client(FakeServer(Settings(features=frozenset())))) is IA
