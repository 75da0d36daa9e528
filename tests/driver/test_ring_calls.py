"""Which files may be the ring of a burst."""

import pytest

from tests.driver.fake_rim import Rim
from tests.driver.small_models import IA, NONE, TYPES, Client, conv
from tightship.driver.protocol import messages as m
from tightship.driver.rules.attachment import FenceState
from tightship.driver.settings import Settings

OFFERED = frozenset({"burst_ring"})


def bursting(features=OFFERED):
    client = Client(Rim(Settings(features=features)))
    model = client(m.Prepare(conv(TYPES["float32"]))).model
    return client, client(m.OpenBurst(model)).burst


def opened(client, burst, size_bytes=m.RING_BYTES, **facts):
    return client.status(m.OpenRing(burst, 0), client.rim.file(size_bytes, **facts))


def test_a_burst_has_one_ring_until_it_is_closed_and_its_file_is_closed_at_once():
    client, burst = bursting()
    assert opened(client, burst) is NONE
    assert client.rim.rings == {(client.number, burst)}
    assert opened(client, burst) is IA
    assert not client.rim.open_files
    assert client.status(m.CloseBurst(burst)) is NONE
    assert not client.rim.rings
    assert opened(client, burst) is IA


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
def test_any_other_file_is_refused(size_bytes, facts):
    client, burst = bursting()
    assert opened(client, burst, size_bytes, **facts) is IA
    assert not client.rim.rings
    assert not client.rim.open_files
    assert opened(client, burst) is NONE


def test_a_ring_needs_a_file_a_burst_of_ones_own_and_a_driver_that_offers_it():
    client, burst = bursting()
    assert client.status(m.OpenRing(burst, 0)) is IA
    assert opened(Client(client.rim), burst) is IA
    client, burst = bursting(frozenset())
    assert opened(client, burst) is IA
