"""Connections of which there may be no more: who makes room, who waits, who is turned away."""

import asyncio
import socket
from contextlib import ExitStack
from time import monotonic_ns

import numpy as np
import pytest

pytest.importorskip("uvicorn")
from tests.driver.oip.endpoint_setting import Setting
from tests.driver.oip.http_setting import Serving, answer_on, ask, reserving_server
from tightship.driver.oip.http.places import Places, Stage
from tightship.driver.oip.limits import EndpointLimits

READY = b"GET /v2/health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n"
RUNS = 3
WAIT = "tightship.driver.oip.http.places.WAIT_S"
S = 10**9


class Played:
    """A connection that was idle for some seconds, or is busy; what has become of it."""

    def __init__(self, idle_s=None, *, has_request=False, peer="a", stage=Stage.IDLE):
        self.peer, self.stage = peer, stage
        self.since_ns = None if idle_s is None else monotonic_ns() - int(idle_s * S)
        self.has_request = has_request
        self.fate = asyncio.get_running_loop().create_future()

    def removable(self):
        return None if self.since_ns is None else (self.stage, self.since_ns)

    def vacate(self):
        self.since_ns = None
        if not self.has_request:
            self.fate.set_result("ended")
        return not self.has_request

    def admitted(self):
        self.fate.set_result("admitted")

    def turned_away(self):
        self.fate.set_result("turned away")


def full(*occupants):
    places = Places(EndpointLimits(connections_max=len(occupants), idle_s=60))
    assert all(places.enter(each) for each in occupants)
    return places


def play(scene):
    asyncio.run(asyncio.wait_for(scene(), 20))


def test_the_one_idle_longest_makes_room():
    async def scene():
        seated = [Played(5), Played(9), Played(), Played(7)]
        places = full(*seated)
        for index in (1, 3, 0):
            assert places.enter(Played())
            assert seated[index].fate.result() == "ended"

    play(scene)


def test_one_that_has_been_used_since_it_was_found_idle_stays():
    async def scene():
        seated = [Played(9), Played(8), Played(7)]
        places = full(*seated)
        assert places.enter(Played())
        seated[1].since_ns = monotonic_ns() - S
        assert places.enter(Played())
        assert [each.fate.done() for each in seated] == [True, False, True]

    play(scene)


def test_one_to_which_a_request_has_come_stays():
    async def scene():
        seated = [Played(9, has_request=True), Played(8)]
        assert full(*seated).enter(Played())
        assert [each.fate.done() for each in seated] == [False, True]

    play(scene)


def test_one_without_a_request_makes_room_before_one_whose_request_comes_slowly():
    async def scene():
        stages = (Stage.SLOW, Stage.HEAD, Stage.IDLE)
        seated = [Played(9 - index, stage=stage) for index, stage in enumerate(stages)]
        places = full(*seated)
        for connection in reversed(seated):
            assert places.enter(Played())
            assert connection.fate.result() == "ended"

    play(scene)


def test_the_peer_with_most_connections_makes_room():
    async def scene():
        alone = Played(9, peer="alone")
        many = [Played(idle_s, peer="many", stage=Stage.HEAD) for idle_s in (3, 5, 4)]
        places = full(alone, *many)
        assert places.enter(Played(peer="new"))
        assert places.enter(Played(peer="newer"))
        assert [each.fate.done() for each in many] == [False, True, True]
        assert not alone.fate.done()

    play(scene)


def test_of_those_that_wait_the_peer_with_fewest_connections_is_first():
    async def scene():
        seated = [Played(peer="many"), Played(peer="many")]
        places, early, late = full(*seated), Played(peer="many"), Played(peer="new")
        assert not places.enter(early)
        assert not places.enter(late)
        places.leave(seated[0])
        assert late.fate.result() == "admitted"
        assert not early.fate.done()

    play(scene)


def test_one_that_was_just_used_makes_room_a_little_later():
    async def scene():
        seated, late, later = Played(0), Played(), Played()
        places = full(seated)
        assert not places.enter(late)
        assert not places.enter(later)
        assert await late.fate == "admitted"
        assert seated.fate.result() == "ended"
        assert await later.fate == "turned away"

    play(scene)


def test_who_waits_has_the_place_of_one_that_leaves():
    async def scene():
        seated, gone, late = Played(), Played(), Played()
        places = full(seated)
        assert not places.enter(gone)
        assert not places.enter(late)
        places.leave(gone)
        places.leave(seated)
        assert late.fate.result() == "admitted"
        assert not gone.fate.done()

    play(scene)


def test_those_that_are_idle_for_too_long_end():
    async def scene():
        seated = [Played(61), Played(59), Played(), Played(70, has_request=True)]
        places = full(*seated)
        places.end_idle()
        assert [each.fate.done() for each in seated] == [True, False, False, False]
        assert places.enter(Played())

    play(scene)


@pytest.fixture
def serving(tmp_path, monkeypatch):
    monkeypatch.setattr(WAIT, 15.0)  # a busy machine may take longer than the usual second
    found = Serving(tmp_path, monkeypatch, EndpointLimits(connections_max=3, drain_s=5.0))
    yield found
    found.close()


@pytest.fixture
def opened():
    with ExitStack() as found:
        yield found


def idle_one(serving, opened):
    found = opened.enter_context(serving.connected())
    assert ask(found, READY)[0] == 200
    return found


def idle_ones(serving, opened, count=3):
    """Connections that ask one after another: one that waits to ask may have to make room."""
    return [idle_one(serving, opened) for _ in range(count)]


def test_a_client_that_says_nothing_makes_room(serving, opened):
    first, *others = idle_ones(serving, opened)
    fourth = opened.enter_context(serving.connected())
    assert ask(fourth, READY)[0] == 200
    assert first.recv(1) == b""
    assert [ask(each, READY)[0] for each in (*others, fourth)] == [200] * 3


def test_many_more_clients_than_places_are_all_answered(serving, opened):
    for connection in idle_ones(serving, opened, 12)[-3:]:
        assert ask(connection, READY)[0] == 200


def test_a_connection_on_which_a_model_ran_makes_room(serving, opened):
    used = opened.enter_context(serving.connected())
    for _ in range(RUNS):
        assert ask(used, serving.request())[0] == 200
    others = idle_ones(serving, opened, 2)
    idle_ones(serving, opened, 1)
    assert used.recv(1) == b""
    assert [ask(each, READY)[0] for each in others] == [200] * 2


def test_a_connection_is_idle_since_its_last_answer(serving, opened):
    used = opened.enter_context(serving.connected())
    for _ in range(RUNS):
        assert ask(used, serving.request())[0] == 200
    first, second = idle_ones(serving, opened, 2)
    assert ask(used, serving.request())[0] == 200
    idle_ones(serving, opened, 1)
    assert first.recv(1) == b""
    assert ask(second, READY)[0] == ask(used, serving.request())[0] == 200


def test_if_all_are_busy_one_more_is_refused(serving, opened, monkeypatch):
    monkeypatch.setattr(WAIT, 1.0)
    for connection in idle_ones(serving, opened):
        head = b"POST /v2/models/neg/infer HTTP/1.1\r\nContent-Length: %d\r\n\r\n"
        connection.sendall(head % (2 << 20) + bytes(1 << 20))
    fourth = opened.enter_context(serving.connected())
    status, said = ask(fourth, READY)
    assert status == 503
    assert "all 3 connections are busy" in said["error"]
    assert "--max-connections" in said["error"]


def test_an_unused_connection_ends(tmp_path, monkeypatch, opened):
    serving = Serving(tmp_path, monkeypatch, EndpointLimits(idle_s=1.0, drain_s=5.0))
    opened.callback(serving.close)
    plain, used = (opened.enter_context(serving.connected()) for _ in range(2))
    assert ask(plain, READY)[0] == 200
    assert {ask(used, serving.request())[0] for _ in range(RUNS)} == {200}
    assert plain.recv(1) == b""
    assert used.recv(1) == b""


def test_a_request_that_was_not_read_yet_is_answered(tmp_path):
    setting = Setting(tmp_path)
    ours, theirs = socket.socketpair()

    async def scene():
        connection = reserving_server(setting.calls).connection()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_accepted_socket(lambda: connection, theirs)
        transport.pause_reading()
        ours.sendall(READY)
        assert connection.removable() is not None
        assert not connection.vacate()
        transport.resume_reading()
        assert (await asyncio.to_thread(answer_on, ours))[0] == 200
        assert connection.vacate()
        assert await asyncio.to_thread(ours.recv, 1) == b""

    with ours:
        play(scene)
    setting.close()


def test_unmodified_clients_connect_again(serving, opened):
    http = pytest.importorskip("tritonclient.http")
    client = opened.enter_context(http.InferenceServerClient(f"127.0.0.1:{serving.server.port}"))
    for _ in range(3):
        assert client.infer("neg", neg_inputs(http)).as_numpy("y").tolist() == [[-1] * 4]
        idle_ones(serving, opened)


def test_unmodified_asynchronous_clients_connect_again(serving, opened):
    aio = pytest.importorskip("tritonclient.http.aio")

    async def scene():
        async with aio.InferenceServerClient(f"127.0.0.1:{serving.server.port}") as client:
            for _ in range(3):
                found = await client.infer("neg", neg_inputs(aio))
                assert found.as_numpy("y").tolist() == [[-1] * 4]
                await asyncio.to_thread(idle_ones, serving, opened)

    play(scene)


def neg_inputs(module):
    found = module.InferInput("x", [1, 4], "FP32")
    found.set_data_from_numpy(np.ones((1, 4), np.float32))
    return [found]
