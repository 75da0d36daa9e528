"""Connections of gRPC by the names that the library gives to their clients."""

import pytest

from tightship.driver.oip.grpc_connections import GrpcConnections
from tightship.driver.oip.limits import LIMITS


@pytest.mark.parametrize(
    ("peer", "ports"), [("ipv4:127.0.0.1:4711", [4711]), ("ipv6:[::1]:4711", [4711]), ("", [])]
)
def test_a_call_keeps_its_connection_also_once_its_client_has_gone(peer, ports):
    connections = GrpcConnections(LIMITS)
    with connections.calling(peer), connections.calling(peer):
        assert list(connections._calling) == ports
    assert not connections._calling
