"""More clients than there is room for: those that make no request make room for those that do."""

import os
import queue
import socket
import threading
import time
from contextlib import ExitStack, suppress

import numpy as np
import onnx
import pytest

grpc = pytest.importorskip("grpc")
pytest.importorskip("uvicorn")
from tests.driver.oip.raw_grpc import opening  # noqa: E402
from tests.driver.oip.serve_process import PATIENCE_S, serve, serve_neg, settles  # noqa: E402
from tests.driver.oip.served import ENDLESS  # noqa: E402
from tests.models import parse  # noqa: E402
from tests.scenarios.serve.test_closed_connections import (  # noqa: E402
    X,
    grpc_request,
    http_request,
    status_on,
)
from tightship.driver.client.client import Client  # noqa: E402
from tightship.driver.types.status import ErrorStatus  # noqa: E402
from tightship.errors import DriverError  # noqa: E402

LIVE = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF_A_HEAD = LIVE[:40]


@pytest.fixture
def opened():
    with ExitStack() as found:
        yield found


def probe(server):
    """The status of a request by a connection of its own; None if it was closed."""
    with server.connected(server.http_port) as connection, suppress(ConnectionError):
        connection.sendall(LIVE)
        return status_on(connection)


def drip(server, ended):
    """Send headers byte by byte, again and again, until `ended`."""
    while not ended.is_set():
        with suppress(OSError), server.connected(server.http_port) as connection:
            connection.sendall(HALF_A_HEAD)
            while not ended.wait(0.1):
                connection.sendall(b"x")


def test_clients_that_drip_headers_keep_no_client_out(tmp_path, opened):
    server = opened.enter_context(serve_neg(tmp_path, "--max-connections", "8"))
    ended = threading.Event()
    before = server.descriptor_count
    for _ in range(16):
        thread = threading.Thread(target=drip, args=(server, ended))
        opened.callback(thread.join)
        thread.start()
    opened.callback(ended.set)
    assert settles(lambda: before - server.descriptor_count, -8) <= -8
    assert [probe(server) for _ in range(20)] == [200] * 20


def test_a_client_whose_headers_come_too_slowly_gets_an_error(tmp_path, opened):
    server = opened.enter_context(serve_neg(tmp_path, "--max-connections", "1"))
    slow = opened.enter_context(server.connected(server.http_port))
    slow.sendall(HALF_A_HEAD)
    assert probe(server) == 200
    assert status_on(slow) == 408


def test_bodies_that_do_not_come_on_make_room(tmp_path, opened):
    server = opened.enter_context(serve_neg(tmp_path, "--max-connections", "2"))
    slow = [opened.enter_context(server.connected(server.http_port)) for _ in range(2)]
    for connection in slow:
        connection.sendall(http_request()[:1000])
    until = time.monotonic() + PATIENCE_S
    while (status := probe(server)) != 200 and time.monotonic() < until:
        assert status == 503
    assert status == 200
    assert status_on(slow[0]) == 408


def connected_from(address, port):
    return socket.create_connection(("127.0.0.1", port), PATIENCE_S, source_address=(address, 0))


def test_the_address_with_most_connections_makes_room(tmp_path, opened):
    server = opened.enter_context(serve_neg(tmp_path, "--max-connections", "3"))
    alone, first, second = (
        opened.enter_context(connected_from(address, server.http_port))
        for address in ("127.0.0.2", "127.0.0.3", "127.0.0.3")
    )
    for connection in (alone, first, second):
        connection.sendall(LIVE)
        assert status_on(connection) == 200
    new = opened.enter_context(connected_from("127.0.0.4", server.http_port))
    for connection in (new, alone, second):
        connection.sendall(LIVE)
        assert status_on(connection) == 200
    assert first.recv(1) == b""


def grpc_call(server, method="ServerLive", request=b""):
    """Return the status and messages of a gRPC call on a connection of its own."""
    own = (("grpc.use_local_subchannel_pool", 1),)
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}", options=own) as channel:
        call = channel.unary_unary(f"/inference.GRPCInferenceService/{method}")
        return call.future(request, timeout=PATIENCE_S, wait_for_ready=True).code()


def crowd(server, opened, count):
    """Connections by gRPC that make no call."""
    found = []
    for _ in range(count):
        found.append(opened.enter_context(server.connected(server.grpc_port)))
        with suppress(ConnectionError):
            found[-1].sendall(opening())
    return found


def open_count(connections):
    return sum(not has_ended(each) for each in connections)


def has_ended(connection):
    """Return whether the server has closed its side, once its bytes are read."""
    connection.setblocking(False)
    try:
        while said := connection.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return not said


def test_idle_connections_of_grpc_make_room(tmp_path, opened):
    server = opened.enter_context(serve_neg(tmp_path, "--max-connections", "8"))
    connections = crowd(server, opened, 100)
    assert settles(lambda: open_count(connections), 8) <= 8
    assert grpc_call(server) is grpc.StatusCode.OK
    assert 1 <= len(server.log.splitlines()) <= 2  # the beginning, and the end on a slow machine


def test_a_connection_of_grpc_with_a_call_stays(tmp_path, opened):
    server = opened.enter_context(serve_neg(tmp_path, "--max-connections", "8"))
    channel = opened.enter_context(grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}"))
    requests = queue.Queue()
    stream = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
    answers = stream(iter(requests.get, None))
    requests.put(grpc_request())
    first = next(answers)
    connections = crowd(server, opened, 50)
    assert settles(lambda: open_count(connections), 7) <= 7
    requests.put(grpc_request())
    assert next(answers) == first
    requests.put(None)


def refusals(ask, few=10):
    """Statuses of the last of many calls, of which the first succeed."""
    found = []
    for count in range(300):
        try:
            ask()
        except DriverError as error:
            assert count > few
            found.append(error.status)
            if len(found) == REFUSED:
                break
    return found


REFUSED = 20
SHORT = [ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT] * REFUSED


def test_pools_of_native_clients_leave_descriptors_to_others(tmp_path, opened):
    server = opened.enter_context(serve_neg(tmp_path, descriptors_max=256))
    client = opened.enter_context(Client(server.socket))
    kept = []
    assert refusals(lambda: kept.append(client.segment(4096))) == SHORT
    assert server.descriptor_count <= 256 - 4 * (256 // 8)
    other = opened.enter_context(Client(server.socket))
    model = other.prepare_named("neg")
    for _ in range(4):  # the second time it offers a ring, whose file is refused
        assert np.array_equal(model.execute([X])[0], -X)
    assert refusals(lambda: kept.append(other.segment(4096))) == SHORT
    assert probe(server) == 200
    assert grpc_call(server) is grpc.StatusCode.OK
    for each in kept:
        each.close()
    assert np.array_equal(model.execute([-X])[0], X)
    lines = server.log.count("are left for files")
    assert 1 <= lines <= 6  # a beginning and an end, each time, on a slow machine, that it was calm


def test_fences_of_native_clients_leave_descriptors_to_others(tmp_path, opened):
    onnx.save(parse(ENDLESS), tmp_path / "endless.onnx")
    server = opened.enter_context(serve(tmp_path / "endless.onnx", descriptors_max=256))
    client = opened.enter_context(Client(server.socket))
    model = client.prepare_named("endless")
    kept = []
    x = np.zeros((1, 1), np.float32)
    assert refusals(lambda: kept.append(model.execute_fenced([x]))) == SHORT
    assert server.descriptor_count <= 256 - 4 * (256 // 8)
    assert probe(server) == 200
    assert grpc_call(server) is grpc.StatusCode.OK


def test_fences_that_one_client_waits_for_leave_descriptors_to_others(tmp_path, opened):
    server = opened.enter_context(serve_neg(tmp_path, descriptors_max=256))
    client = opened.enter_context(Client(server.socket))
    model = client.prepare_named("neg")
    fence, _ = (
        opened.enter_context(os.fdopen(end, mode))
        for end, mode in zip(os.pipe(), "rw", strict=True)
    )
    kept = []

    def wait():
        kept.append(model.execute_fenced([X], wait_for=[fence] * 8))

    assert refusals(wait, few=2) == SHORT
    other = opened.enter_context(Client(server.socket))
    assert np.array_equal(other.prepare_named("neg").execute([X])[0], -X)
    assert probe(server) == 200


def test_native_clients_that_find_no_descriptor_get_the_reason(tmp_path, opened):
    server = opened.enter_context(serve_neg(tmp_path, descriptors_max=256))

    def connect():
        opened.enter_context(Client(server.socket)).capabilities()

    assert refusals(connect) == SHORT


def test_crowds_at_every_endpoint_keep_no_client_out_and_fill_no_log(tmp_path, opened):
    server = opened.enter_context(serve_neg(tmp_path, descriptors_max=256))
    for _ in range(300):
        connection = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        with suppress(OSError):
            connection.settimeout(1)
            connection.connect(str(server.socket))
    for port in (server.grpc_port, server.http_port):
        for _ in range(300):
            connection = opened.enter_context(server.connected(port))
            with suppress(ConnectionError):
                connection.sendall(opening() if port == server.grpc_port else HALF_A_HEAD)
    assert settles(lambda: probe(server) != 200, 0) == 0
    assert grpc_call(server) is grpc.StatusCode.OK
    assert server.descriptor_count < 256
    assert "Traceback" not in server.log
    assert len(server.log.splitlines()) <= 6  # a beginning and an end for each endpoint
