"""Connections of gRPC by the names that the library gives to their clients."""

import pytest

from tightship.driver.oip.grpc.connections import port_of


@pytest.mark.parametrize(
    ("peer", "port"), [("ipv4:127.0.0.1:4711", 4711), ("ipv6:[::1]:4711", 4711), ("", None)]
)
def test_a_client_is_named_with_its_port_until_it_is_gone(peer, port):
    assert port_of(peer) == port
