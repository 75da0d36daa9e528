"""Log of refused requests: client, object and reason, in a bounded number of lines."""

import logging

import pytest

pytest.importorskip("grpc")
pytest.importorskip("uvicorn")
import grpc

from tests.driver.oip.endpoint_setting import Setting
from tests.driver.oip.http_setting import Serving, ask
from tightship.driver.oip.grpc.serving import SERVICE, GrpcServer
from tightship.driver.oip.limits import EndpointLimits
from tightship.driver.oip.refusal_log import CLIENTS_MAX, TEXT_MAX, RefusalLog
from tightship.driver.types.quota import LINES_MAX


@pytest.fixture(autouse=True)
def everything(caplog):
    caplog.set_level(logging.INFO)


def test_the_first_refusals_of_each_client_are_logged(caplog):
    log = RefusalLog()
    for _ in range(LINES_MAX + 5):
        log.refused("http:one:80", "GET /x", "there is no x")
    log.refused("http:two:80", "GET /y", "there is no y")
    assert caplog.messages == [
        *["http:one:80: GET /x is refused: there is no x"] * LINES_MAX,
        "http:one: further refusals are not logged.",
        "http:two:80: GET /y is refused: there is no y",
    ]


@pytest.mark.parametrize("address", ["http:10.0.0.1", "http:::1", "ipv6:%5B::1%5D"])
def test_a_client_that_connects_anew_is_the_same(caplog, address):
    log = RefusalLog()
    for port in range(LINES_MAX + 5):
        log.refused(f"{address}:{port}", "GET /x", "there is no x")
    assert len(caplog.messages) == LINES_MAX + 1
    assert caplog.messages[-1] == f"{address}: further refusals are not logged."
    assert len(log._counts) == 1


def test_a_line_is_short_whatever_a_client_writes(caplog):
    RefusalLog().refused("http:one:80", "x" * 65536, "y" * 65536)
    assert len(caplog.messages[0]) < 3 * TEXT_MAX


def test_an_error_of_ours_is_logged_with_its_place_as_rarely(caplog):
    log = RefusalLog()
    for _ in range(LINES_MAX + 5):
        try:
            int("ours")
        except ValueError:
            log.failed("http:one:80", "GET /x")
    assert len(caplog.records) == LINES_MAX + 1
    assert caplog.records[0].exc_info[0] is ValueError


def test_clients_are_counted_in_bounded_memory(caplog):
    log = RefusalLog()
    for _ in range(LINES_MAX + 1):
        log.refused("http:first:80", "", "")
    for number in range(CLIENTS_MAX):
        log.refused(f"http:{number}:80", "", "")
    caplog.clear()
    log.refused("http:first:80", "", "")
    assert caplog.messages == ["http:first:80:  is refused: "]


def test_what_a_client_writes_stays_on_its_line(caplog):
    RefusalLog().refused("http:one:80", "GET /\nx", "\x1b[31mred")
    assert caplog.messages == ["http:one:80: GET /?x is refused: ?[31mred"]


def test_a_server_tells_of_refusals_by_address(tmp_path, monkeypatch, caplog):
    unknown = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
    serving = Serving(tmp_path, monkeypatch)
    with serving.connected() as one, serving.connected() as other:
        ports = [each.getsockname()[1] for each in (one, other)]
        for _ in range(LINES_MAX - 1):
            assert ask(one, unknown)[0] == 404
        assert ask(other, b"no request\r\n\r\n")[0] == 400
        for _ in range(5):
            assert ask(one, unknown)[0] == 404
    serving.close()
    lines = [each for each in caplog.messages if each.startswith("http:")]
    assert len(lines) == LINES_MAX + 1
    assert lines[0].startswith(f"http:127.0.0.1:{ports[0]}: GET /nothing is refused: ")
    assert lines[-2].startswith(f"http:127.0.0.1:{ports[1]}: what came is refused: ")
    assert lines[-1] == "http:127.0.0.1: further refusals are not logged."


def test_grpc_tells_of_refusals_too_and_of_those_in_streams(tmp_path, caplog):
    setting = Setting(tmp_path)
    server = GrpcServer(setting.endpoint, EndpointLimits(), "127.0.0.1", 0)
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.unary_unary(f"/{SERVICE}/ModelMetadata")
        for _ in range(LINES_MAX - 1):
            with pytest.raises(grpc.RpcError, match="unknown model"):
                call(b"")
        stream = channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
        assert len(list(stream(iter([b"", b""])))) == 2
    server.begin_stop()
    server.join()
    setting.close()
    said = [each for each in caplog.messages if each.startswith("ipv4:127.0.0.1:")]
    assert ["ModelMetadata is refused: " in each for each in said[:-2]] == [True] * (LINES_MAX - 1)
    assert "ModelStreamInfer is refused: " in said[-2]
    assert said[-1].endswith("further refusals are not logged.")
