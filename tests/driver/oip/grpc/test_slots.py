"""Calls of gRPC that keep the server waiting hold their slots only while others need none."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import islice

import pytest

grpc = pytest.importorskip("grpc")
pytest.importorskip("uvicorn")
from tests.driver.oip import raw_grpc as raw  # noqa: E402
from tests.driver.oip.endpoint_setting import Setting  # noqa: E402
from tests.driver.oip.serve_process import PATIENCE_S, serve_neg  # noqa: E402
from tests.scenarios.serve.test_crowds import connected_from, grpc_call  # noqa: E402
from tightship.driver.oip.grpc.serving import SERVICE, GrpcServer  # noqa: E402
from tightship.driver.oip.grpc.slots import CallSlots, OpenCall, Stage  # noqa: E402
from tightship.driver.oip.limits import EndpointLimits  # noqa: E402
from tightship.driver.oip.refusal import OipError  # noqa: E402
from tightship.driver.oip.refusal_log import RefusalLog  # noqa: E402

OK = grpc.StatusCode.OK
CANCELLED, INVALID_ARGUMENT, RESOURCE_EXHAUSTED = 1, 3, 8
MESSAGE_BYTES = 64
SLOTS = 8


@pytest.fixture
def opened():
    with ExitStack() as found:
        yield found


@pytest.fixture
def server(tmp_path, opened):
    return opened.enter_context(serve_neg(tmp_path, "--max-connections", str(SLOTS)))


def streams(count):
    return range(1, 2 * count, 2)


def send_halves(connection, count, method="ModelInfer"):
    """Begin calls of which half of a message is sent."""
    begun = (
        raw.call_head(method, each) + raw.half_message(MESSAGE_BYTES, each)
        for each in streams(count)
    )
    connection.sendall(raw.opening() + b"".join(begun))


def ended_streams(connection):
    """Streams as the server ends them, with the numbers of their statuses."""
    for kind, flags, stream, payload in raw.frames(connection):
        if kind == raw.HEADERS and flags & raw.END_STREAM:
            yield stream, raw.status_in(payload)


@pytest.mark.parametrize("method", ["ModelInfer", "ServerMetadata", "ModelStreamInfer"])
def test_half_messages_make_room_for_calls(server, opened, method):
    connection = opened.enter_context(server.connected(server.grpc_port))
    send_halves(connection, 4 * SLOTS, method)
    ended = dict(islice(ended_streams(connection), 3 * SLOTS))
    assert set(ended.values()) <= {CANCELLED, RESOURCE_EXHAUSTED}
    while grpc_call(server) is not OK:
        pass  # halves that waited for a slot as well have just taken theirs
    assert [grpc_call(server) for _ in range(2 * SLOTS)] == [OK] * 2 * SLOTS


def test_the_address_with_most_calls_makes_room(server, opened):
    alone, many = (
        opened.enter_context(connected_from(address, server.grpc_port))
        for address in ("127.0.0.2", "127.0.0.3")
    )
    send_halves(alone, 1, "ServerMetadata")
    send_halves(many, SLOTS - 1)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(next, ended_streams(many))
        while not first.done():  # calls find slots until all halves have come
            assert grpc_call(server) in {OK, grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert first.result()[1] == CANCELLED
    alone.sendall(raw.other_half(MESSAGE_BYTES))
    assert next(ended_streams(alone)) == (1, INVALID_ARGUMENT)  # it is whole: zeros


def test_answers_that_are_not_read_keep_their_slots(server, opened):
    connection = opened.enter_context(server.connected(server.grpc_port))
    connection.sendall(raw.opening(window_bytes=0))
    empty = raw.frame(raw.DATA, raw.END_STREAM, 0, bytes(5))
    count, answered, ended = 3 * SLOTS, set(), set()
    for each in streams(count):
        connection.sendall(raw.call_head("ServerLive", each))
        connection.sendall(empty[:5] + each.to_bytes(4) + empty[9:])
    for kind, flags, stream, _ in raw.frames(connection):
        if kind == raw.HEADERS and not flags & raw.END_STREAM:
            answered.add(stream)
        elif kind == raw.HEADERS:
            ended.add(stream)
        if len(answered | ended) == count:
            break
    assert 0 < len(answered - ended) <= SLOTS


def in_process(folder, opened, **limits):
    """A server of gRPC in this process."""
    setting = Setting(folder)
    opened.callback(setting.close)
    server = GrpcServer(setting.endpoint, EndpointLimits(**limits), "127.0.0.1", 0)
    opened.callback(server.join)
    opened.callback(server.begin_stop)
    server.start()
    return server


@pytest.mark.parametrize("window_bytes", [0, 65535])
def test_a_call_that_waits_too_long_for_its_client_ends(tmp_path, opened, window_bytes):
    """Either for the rest of its message, or until its answer is read."""
    server = in_process(tmp_path, opened, transfer_s=0.1)
    connection = opened.enter_context(connected_from("127.0.0.1", server.port))
    connection.sendall(raw.opening(window_bytes) + raw.call_head("ServerMetadata"))
    connection.sendall(raw.half_message(0 if window_bytes == 0 else MESSAGE_BYTES))
    assert next(ended_streams(connection)) == (1, CANCELLED)


def test_a_call_takes_one_message(tmp_path, opened):
    server = in_process(tmp_path, opened)
    channel = opened.enter_context(closing(grpc.insecure_channel(f"127.0.0.1:{server.port}")))
    call = channel.stream_unary(f"/{SERVICE}/ServerMetadata")
    none = call.future(iter(()), timeout=PATIENCE_S)
    assert none.code() is grpc.StatusCode.UNIMPLEMENTED
    assert none.details() == "ServerMetadata takes one message, and none came"
    assert call(iter([b"", b"no message"]), timeout=PATIENCE_S) == call(iter([b""]))


def call_of(account, stage=Stage.ANSWER, since_ns=0):
    cancelled = []
    call = OpenCall("m", f"{account}:1", account, lambda: cancelled.append(account))
    call.state = (stage, since_ns)
    return call, cancelled


@pytest.mark.parametrize("stage", list(Stage))
def test_calls_make_room_that_wait_for_their_clients(stage):
    slots = CallSlots(EndpointLimits(connections_max=1), RefusalLog())
    first, cancelled = call_of("a", stage)
    slots.take(first)
    second, _ = call_of("a")
    if stage is Stage.ANSWER:
        with pytest.raises(OipError, match="all 1 calls are busy"):
            slots.take(second)
    else:
        slots.take(second)
    assert cancelled == ([] if stage is Stage.ANSWER else ["a"])
    slots.leave(first)  # as every call does at its end
    slots.leave(second)
    slots.take(call_of("b")[0])


def test_a_call_that_was_over_before_it_had_a_slot_takes_none():
    slots = CallSlots(EndpointLimits(connections_max=1), RefusalLog())
    gone, _ = call_of("a")
    slots.leave(gone)
    with pytest.raises(OipError):
        slots.take(gone)
    slots.take(call_of("a")[0])


def test_a_slot_goes_to_the_account_with_fewest_calls():
    slots = CallSlots(EndpointLimits(connections_max=2), RefusalLog())
    busy = [call_of("many")[0] for _ in range(2)]
    for call in busy:
        slots.take(call)
    order = []

    def wait(account):
        slots.take(call_of(account)[0])
        order.append(account)

    threads = []
    for waiting, account in enumerate(("many", "few"), start=1):
        threads.append(threading.Thread(target=wait, args=(account,)))
        threads[-1].start()
        while len(slots._waiting) < waiting:
            pass
    slots.leave(busy[0])
    threads[1].join()
    slots.leave(busy[1])
    threads[0].join()
    assert order == ["few", "many"]
