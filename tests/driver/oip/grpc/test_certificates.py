"""New gRPC connections have a certificate that was replaced."""

import socket
import ssl

import pytest

pytest.importorskip("grpc")
from tests.driver.oip.admission.pem import certificate
from tests.driver.oip.endpoint_setting import Setting
from tightship.driver.oip.admission import watched_files
from tightship.driver.oip.admission.certificate import Certificate
from tightship.driver.oip.admission.gate import Entry
from tightship.driver.oip.grpc.serving import GrpcServer
from tightship.driver.oip.limits import EndpointLimits


def name_at(port, chain):
    context = ssl.create_default_context(cafile=chain)
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        return connection.getpeercert()["subject"][0][0][1]


def test_a_replaced_certificate_is_used_for_new_connections(tmp_path, monkeypatch):
    monkeypatch.setattr(watched_files, "PERIOD_S", 0.0)
    chain, key = certificate(tmp_path)
    setting, entry = Setting(tmp_path), Entry(certificate=Certificate(chain, key))
    server = GrpcServer(setting.endpoint, EndpointLimits(drain_s=5), "127.0.0.1", 0, entry)
    server.start()
    try:
        assert name_at(server.port, chain) == "server"
        new_chain, new_key = certificate(tmp_path, "new")
        new_chain.replace(chain)
        new_key.replace(key)
        assert name_at(server.port, chain) == "new"
        assert name_at(server.port, chain) == "new"
    finally:
        server.begin_stop()
        server.join()
        setting.close()
