"""What is logged of refused requests: who, what, why, and not without end."""

import logging

import pytest

pytest.importorskip("grpc")
pytest.importorskip("httptools")
import grpc

from tests.driver.oip.face_setting import Setting
from tests.driver.oip.http_setting import Serving, ask
from tightship.driver.oip.grpc_serving import SERVICE, GrpcServer
from tightship.driver.oip.limits import FaceLimits
from tightship.driver.oip.refusal_log import CLIENTS_MAX, RefusalLog
from tightship.driver.rim.client_log import LINES_MAX


@pytest.fixture(autouse=True)
def everything(caplog):
    caplog.set_level(logging.INFO)


def test_of_each_client_the_first_refusals_are_told(caplog):
    log = RefusalLog()
    for _ in range(LINES_MAX + 5):
        log.refused("one", "GET /x", "there is no x")
    log.refused("two", "GET /y", "there is no y")
    assert caplog.messages == [
        *["one: GET /x is refused: there is no x"] * LINES_MAX,
        "one: what else is refused of it is not told.",
        "two: GET /y is refused: there is no y",
    ]


def test_a_mistake_of_ours_is_told_with_its_place_as_seldom(caplog):
    log = RefusalLog()
    for _ in range(LINES_MAX + 5):
        try:
            int("ours")
        except ValueError:
            log.failed("one", "GET /x")
    assert len(caplog.records) == LINES_MAX + 1
    assert caplog.records[0].exc_info[0] is ValueError


def test_clients_are_counted_in_bounded_memory(caplog):
    log = RefusalLog()
    for _ in range(LINES_MAX + 1):
        log.refused("first", "", "")
    for number in range(CLIENTS_MAX):
        log.refused(str(number), "", "")
    caplog.clear()
    log.refused("first", "", "")
    assert caplog.messages == ["first:  is refused: "]


def test_what_a_client_writes_stays_on_its_line(caplog):
    RefusalLog().refused("one", "GET /\nx", "\x1b[31mred")
    assert caplog.messages == ["one: GET /?x is refused: ?[31mred"]


def test_a_server_tells_of_refusals_by_connection(tmp_path, monkeypatch, caplog):
    unknown = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
    serving = Serving(tmp_path, monkeypatch)
    with serving.connected() as one, serving.connected() as other:
        ports = [each.getsockname()[1] for each in (one, other)]
        for _ in range(LINES_MAX + 5):
            assert ask(one, unknown)[0] == 404
        assert ask(other, b"no request\r\n\r\n")[0] == 400
    serving.close()
    lines = [each for each in caplog.messages if each.startswith("http:")]
    assert len(lines) == LINES_MAX + 2
    assert lines[0].startswith(f"http:127.0.0.1:{ports[0]}: GET /nothing is refused: ")
    assert lines[-1].startswith(f"http:127.0.0.1:{ports[1]}: what came is refused: ")


def test_grpc_tells_of_refusals_too_and_of_those_in_streams(tmp_path, caplog):
    setting = Setting(tmp_path)
    server = GrpcServer(setting.face, FaceLimits(), "127.0.0.1", 0)
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.unary_unary(f"/{SERVICE}/ModelReady")
        for _ in range(LINES_MAX - 1):
            with pytest.raises(grpc.RpcError, match="unknown model"):
                call(b"")
        stream = channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
        assert len(list(stream(iter([b"", b""])))) == 2
    server.begin_stop()
    server.join()
    setting.close()
    said = [each for each in caplog.messages if each.startswith("ipv4:127.0.0.1:")]
    assert ["ModelReady is refused: " in each for each in said[:-2]] == [True] * (LINES_MAX - 1)
    assert "ModelStreamInfer is refused: " in said[-2]
    assert said[-1].endswith("what else is refused of it is not told.")
