"""Shutdown of a driver, and descriptors whose numbers are reused."""

import threading
import time
from contextlib import contextmanager

import pytest

from tests.scenarios.driver.test_hostile_clients import connected
from tightship._core import RunPermits
from tightship.driver.client.client import Client
from tightship.driver.oip.repository import Repository
from tightship.driver.server import accepting
from tightship.driver.server import peer as peers
from tightship.driver.server.access import Access
from tightship.driver.server.server import Server
from tightship.driver.service.events import Tick
from tightship.driver.service.service import RECENT_NS
from tightship.driver.types.quota import Accounts, Resource
from tightship.driver.types.settings import USER_LIMITS
from tightship.errors import DriverError

PATIENCE_S = 30


@pytest.fixture
def server(tmp_path):
    """A driver of this process that listens and does not serve yet."""
    return Server(tmp_path / "driver.sock", Repository(dict), RunPermits(1))


def test_a_driver_that_has_ended_may_be_ended_once_more(server):
    server.stop()
    server.serve()
    server.stop()


def test_a_failure_beside_the_calls_ends_the_driver_and_its_clients(server, tmp_path, monkeypatch):
    failures = []

    def serve():
        try:
            server.serve()
        except ZeroDivisionError as error:
            failures.append(error)

    thread = threading.Thread(target=serve, daemon=True)
    with connected(tmp_path / "driver.sock") as client:
        thread.start()
        monkeypatch.setattr(server, "_happen", lambda _: 1 / 0)
        server._effect_runner.workers.do(Tick)
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        assert client.recv(1) == b""
    assert failures


def test_a_failure_in_parting_from_clients_keeps_no_thread_waiting(server, tmp_path, monkeypatch):
    def refuse(_):
        raise MemoryError

    failures = []

    def serve():
        try:
            server.serve()
        except MemoryError as error:
            failures.append(error)

    monkeypatch.setattr(server, "_hang_up", refuse)
    thread = threading.Thread(target=serve, daemon=True)
    with connected(tmp_path / "driver.sock"):
        thread.start()
        while not server._peers:
            assert thread.is_alive()
        server.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    for peer in server._peers.values():
        peer.close()
    assert failures


def test_who_cannot_be_heard_for_want_of_memory_is_parted_from(server, tmp_path, monkeypatch):
    def refuse(*_):
        raise MemoryError

    thread = threading.Thread(target=server.serve)
    thread.start()
    with Client(tmp_path / "driver.sock") as other:
        with monkeypatch.context() as patched, connected(tmp_path / "driver.sock") as client:
            patched.setattr(peers, "receive", refuse)
            client.settimeout(PATIENCE_S)
            client.send(b"a call")
            with pytest.raises(ConnectionResetError):
                client.recv(1)
        assert other.capabilities().feature_level == 1
    server.stop()
    thread.join()


def test_clients_that_were_one_too_many_are_forgotten(tmp_path):
    accounts = Accounts({**USER_LIMITS, Resource.CONNECTIONS: 0})
    path = tmp_path / "driver.sock"
    crowded = Server(path, Repository(dict), RunPermits(1), access=Access(accounts=accounts))
    thread = threading.Thread(target=crowded.serve)
    thread.start()
    for _ in range(3):
        with Client(path) as client, pytest.raises(DriverError):
            client.capabilities()
    crowded.stop()
    thread.join()
    assert not crowded._log._callers
    assert not crowded._log._refusals


@contextmanager
def served(path, limit):
    """A driver of this process in which a user has so many connections; its accounts as well."""
    accounts = Accounts({**USER_LIMITS, Resource.CONNECTIONS: limit})
    running = Server(path, Repository(dict), RunPermits(1), access=Access(accounts=accounts))
    thread = threading.Thread(target=running.serve)
    thread.start()
    yield running
    running.stop()
    thread.join()


def test_at_the_limit_the_connection_idle_longest_that_holds_nothing_ends(tmp_path):
    path = tmp_path / "driver.sock"
    with served(path, 3), Client(path) as holder, Client(path) as first, Client(path) as second:
        segment = holder.segment(4096)
        first.capabilities()
        second.capabilities()
        time.sleep(2 * RECENT_NS / 1e9)
        with Client(path) as third:
            assert third.capabilities()
            with pytest.raises(DriverError, match="make room for another client"):
                first.capabilities()
            assert second.capabilities()
            assert holder.capabilities()
        del segment


def test_connections_that_hold_something_or_called_just_now_stay(tmp_path):
    path = tmp_path / "driver.sock"
    with served(path, 2), Client(path) as holder, Client(path) as recent:
        segment = holder.segment(4096)
        time.sleep(2 * RECENT_NS / 1e9)
        recent.capabilities()
        with Client(path) as one_more, pytest.raises(DriverError, match="are left"):
            one_more.capabilities()
        assert recent.capabilities()
        assert holder.capabilities()
        del segment


def test_idle_connections_make_room_where_too_few_descriptors_are_left(tmp_path, monkeypatch):
    path = tmp_path / "driver.sock"
    with served(path, 99) as running, Client(path) as idle:
        idle.capabilities()
        time.sleep(2 * RECENT_NS / 1e9)
        limit = len(running._peers)
        monkeypatch.setattr(accepting, "is_reserved", lambda *_: len(running._peers) >= limit)
        with Client(path) as wanted:
            assert wanted.capabilities()
            with pytest.raises(DriverError, match="Connect again"):
                idle.capabilities()
            with Client(path) as refused, pytest.raises(DriverError, match="too few descriptors"):
                refused.capabilities()
