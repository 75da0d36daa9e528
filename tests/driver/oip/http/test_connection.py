"""Raw bytes, from impolite clients, against a server in a process of its own."""

import asyncio
import gc
import http.client
import json
import select
import signal
import socket
from contextlib import ExitStack

import pytest

pytest.importorskip("uvicorn")
from tests.driver.oip.endpoint_setting import Setting
from tests.driver.oip.http_setting import reserving_server
from tests.driver.oip.served import server
from tightship.driver.oip.http.connection import HttpConnection
from tightship.driver.oip.http.cycle import Cycle

BODY = json.dumps(
    {
        "inputs": [
            {"name": name, "datatype": "INT32", "shape": [1, 16], "data": [1] * 16}
            for name in ("INPUT0", "INPUT1")
        ]
    }
).encode()
BODY_BYTES = len(BODY)


@pytest.fixture(scope="module")
def port():
    with server("small") as served:
        yield port_of(served)


def port_of(served):
    return int(served.http.rpartition(":")[2])


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def response_to(connection, *pieces):
    for piece in pieces:
        connection.sendall(piece)
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status, response.read()


def infer_head(*headers, length=BODY_BYTES):
    lines = [
        "POST /v2/models/simple/infer HTTP/1.1",
        "Host: localhost",
        f"Content-Length: {length}",
    ]
    return "\r\n".join([*lines, *headers, "", ""]).encode()


def test_a_body_may_come_byte_by_byte_or_in_chunks(port):
    with connected(port) as connection:
        pieces = [bytes([each]) for each in infer_head() + BODY]
        status, body = response_to(connection, *pieces)
        assert (status, json.loads(body)["outputs"][0]["data"]) == (200, [2] * 16)
        head = infer_head().replace(
            b"Content-Length: %d" % len(BODY), b"Transfer-Encoding: chunked"
        )
        chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
        assert response_to(connection, head, chunk)[0] == 200


def test_requests_that_come_together_are_answered_in_order(port):
    ready = b"GET /v2/models/simple/ready HTTP/1.1\r\nHost: localhost\r\n\r\n"
    index = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(port) as connection:
        connection.sendall(infer_head() + BODY + ready + index)
        answers = []
        file = connection.makefile("rb")
        for _ in range(3):
            answers.append(int(file.readline().split()[1]))
            lengths = [line for line in iter(file.readline, b"\r\n") if b"Length: " in line]
            file.read(int(lengths[0].split()[1]))
        file.close()
    assert answers == [200, 200, 404]


def test_bytes_that_come_again_are_answered_again(port):
    request, other = infer_head() + BODY, infer_head() + BODY.replace(b"[1, 1, 1", b"[2, 1, 1")
    assert len(request) == len(other)

    def statuses(data, count):
        connection.sendall(data)
        return [first_of(file) for _ in range(count)]

    with connected(port) as connection, connection.makefile("rb") as file:
        for _ in range(20):
            assert statuses(request, 1) == [2]
            assert statuses(other, 1) == [4]
            assert statuses(request + other + request, 3) == [2, 4, 2]
            assert statuses(request + other[:-5], 1) == [2]
            assert statuses(other[-5:], 1) == [4]


def test_a_last_request_is_the_last_however_often_it_comes(port):
    for _ in range(5):
        with connected(port) as connection, connection.makefile("rb") as file:
            connection.sendall(infer_head("Connection: close") + BODY)
            assert first_of(file) == 2
            assert file.read() == b""


def test_a_body_that_looks_like_a_request_is_none(port):
    request = infer_head() + BODY
    with connected(port) as connection:
        for _ in range(5):
            assert response_to(connection, request)[0] == 200
        connection.sendall(infer_head("Expect: 100-continue", length=len(request)))
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")  # so they come apart
        assert response_to(connection, request)[0] == 400


def first_of(file):
    """The first element of the first output of a response."""
    assert file.readline() == b"HTTP/1.1 200 OK\r\n"
    headers = http.client.parse_headers(file)
    return json.loads(file.read(int(headers["Content-Length"])))["outputs"][0]["data"][0]


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_a_client_that_expects_a_keep_alive_header_has_its_connection_closed(port, version):
    request = infer_head("Connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/" + version)
    with connected(port) as connection, connection.makefile("rb") as file:
        connection.sendall(request + BODY)
        assert first_of(file) == 2
        if version == b"1.0":
            assert file.read() == b""
        else:
            assert response_to(connection, request + BODY)[0] == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_offer_of_another_protocol_is_not_taken(port, method):
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
    request, wanted = infer_head(*offer) + BODY, [2] * 16
    if method == "GET":
        request = "\r\n".join(["GET /v2 HTTP/1.1", "Host: localhost", *offer, "", ""]).encode()
    with connected(port) as connection:
        for _ in range(2):
            status, body = response_to(connection, request)
            assert status == 200
            assert method == "GET" or json.loads(body)["outputs"][0]["data"] == wanted
        with connection.makefile("rb") as file:
            connection.sendall(request * 100)
            for _ in range(100):
                assert file.readline() == b"HTTP/1.1 200 OK\r\n"
                file.read(int(http.client.parse_headers(file)["Content-Length"]))


def test_a_head_is_that_of_the_answer_to_a_get(port):
    with connected(port) as connection, connection.makefile("rb") as file:
        heads = []
        for method in (b"GET", b"HEAD", b"GET"):
            connection.sendall(method + b" /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            heads.append(list(iter(file.readline, b"\r\n")))
            if method == b"GET":
                file.read(int(heads[-1][1].split()[1]))
        assert heads[0] == heads[1] == heads[2]


def test_headers_behind_a_body_say_nothing_of_it(port):
    head = infer_head().replace(b"Content-Length: %d" % len(BODY), b"Transfer-Encoding: chunked")
    chunk = b"%x\r\n%s\r\n0\r\n" % (len(BODY), BODY)
    for trailer in (b"Inference-Header-Content-Length: 3", b"Origin: http://other"):
        with connected(port) as connection:
            assert response_to(connection, head, chunk, trailer + b"\r\n\r\n")[0] == 200


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (infer_head(length=1 << 17), 413),
        (infer_head("X: " + "y" * 70_000), 431),
        (infer_head("Transfer-Encoding: chunked"), 400),
        (infer_head("Inference-Header-Content-Length: -1") + BODY, 400),
        (infer_head("Inference-Header-Content-Length: 99999") + BODY, 400),
        (infer_head("Content-Encoding: gzip") + BODY, 400),
        (infer_head("Content-Encoding: br") + BODY, 501),
    ],
)
def test_what_cannot_be_served_is_answered_with_a_reason(port, request_bytes, status):
    with connected(port) as connection:
        found, body = response_to(connection, request_bytes)
    assert found == status
    assert json.loads(body)["error"]


def test_what_does_not_come_in_time_is_answered_with_a_reason():
    with server("hasty") as served, connected(port_of(served)) as connection:
        status, body = response_to(connection, infer_head()[:-30])
    assert status == 408
    assert json.loads(body)["error"]


def test_a_chunked_body_has_the_same_limit(port):
    head = infer_head().replace(b"Content-Length: %d" % len(BODY), b"Transfer-Encoding: chunked")
    with connected(port) as connection:
        assert response_to(connection, head, b"20000\r\n", bytes(0x20000))[0] == 413


def test_metrics_are_counted_for_prometheus(port):
    with connected(port) as connection:
        status, text = response_to(connection, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status == 200
    assert (
        b'nv_inference_request_failure{model="open",version="1",face="protocol"} 0'
        in text.splitlines()
    )


def bytes_taken(connection, piece, bytes_max):
    """Return how many pieces a server accepts from a client that never reads its answers."""
    connection.setblocking(False)
    taken = 0
    while taken < bytes_max and select.select([], [connection], [], 1)[1]:
        taken += connection.send(piece)
    return taken


def test_a_client_that_never_reads_is_not_read_without_end():
    padded = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"0" * 4000 + b"\r\n\r\n"
    with server() as served:
        port = port_of(served)
        with connected(port) as deaf:
            assert bytes_taken(deaf, padded * 16, 100 << 20) < 100 << 20
        with connected(port) as other:
            assert response_to(other, b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 200


class Cut(asyncio.Transport):
    """A connection whose client is gone as soon as something is written to it."""

    def __init__(self):
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.written = b""

    def write(self, data):
        self.written += data

    def is_closing(self):
        return bool(self.written)

    def is_reading(self):
        return False

    def close(self):
        pass


class Reading(Cut):
    """A connection whose client reads all that is written."""

    def is_closing(self):
        return False


@pytest.mark.parametrize("method", ["GET /v2", "POST /v2/models/simple/infer", "GET /no"])
def test_requests_leave_nothing_for_the_garbage_collector(tmp_path, method):
    """Wait for none of its collections, of which those of old objects are rare."""
    setting = Setting(tmp_path)

    async def served():
        connection, transport = reserving_server(setting.calls).connection(), Reading()
        connection.connection_made(transport)
        head = f"{method} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{{}}"
        gc.collect()
        gc.disable()
        for count in range(20):
            connection.data_received(head.encode())
            while transport.written.count(b"HTTP/1.1") == count:
                await asyncio.sleep(0.001)
        left = sum(isinstance(each, Cycle) for each in gc.get_objects())
        gc.enable()
        connection.connection_lost(None)
        return transport.written.count(b"HTTP/1.1"), left

    answered, left = asyncio.run(served())
    assert answered == 20
    assert left <= 1  # that of the last request
    setting.close()


def test_nothing_is_written_to_a_client_that_is_gone(tmp_path):
    setting = Setting(tmp_path)

    async def served():
        connection, transport = reserving_server(setting.calls).connection(), Cut()
        assert isinstance(connection, HttpConnection)
        connection.connection_made(transport)
        connection.data_received(b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5)
        for _ in range(20):
            await asyncio.sleep(0)
        connection.connection_lost(None)
        return transport.written.count(b"HTTP/1.1")

    assert asyncio.run(served()) == 1
    setting.close()


def test_a_client_that_is_gone_is_refused_without_a_word(tmp_path):
    setting = Setting(tmp_path)

    async def refused():
        connection, transport = reserving_server(setting.calls).connection(), Cut()
        connection.connection_made(transport)
        transport.written = b"what ended it"
        assert connection.removable() is None
        connection.turned_away()
        connection.connection_lost(None)
        return transport.written

    assert asyncio.run(refused()) == b"what ended it"
    setting.close()


def refuses_connections(port):
    try:
        connected(port).close()
    except ConnectionError:
        return True
    return False


def test_a_request_that_has_begun_is_answered_before_the_end():
    with ExitStack() as opened:
        served = opened.enter_context(server())
        process, port = served.process, port_of(served)
        idle, busy = (opened.enter_context(connected(port)) for _ in range(2))
        busy.sendall(infer_head("Expect: 100-continue"))
        assert busy.recv(100).startswith(b"HTTP/1.1 100 ")
        process.send_signal(signal.SIGTERM)
        assert idle.recv(1) == b""
        while not refuses_connections(port):
            assert process.poll() is None
        assert response_to(busy, BODY)[0] == 200
        assert busy.recv(1) == b""
        busy.close()
        assert process.wait(20) == 0
