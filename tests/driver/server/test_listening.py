"""Clients for whom no descriptor is left are turned away, and the driver listens on."""

import os
import resource
import socket
from contextlib import contextmanager, suppress

import pytest

from tests.scenarios.driver.test_hostile_clients import connected
from tightship.driver.protocol.codec import decode_reply
from tightship.driver.server import listening
from tightship.driver.server.listening import FAREWELL, ListeningSocket, caller_of


@pytest.fixture
def door(tmp_path):
    made = ListeningSocket(tmp_path / "driver.sock", is_open=False)
    yield made
    made.shut()


@contextmanager
def no_descriptors():
    """Let this process open no more files within the block."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    filling = [os.open(os.devnull, os.O_RDONLY)]
    highest = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, limits[1]))
    try:
        while True:
            filling.append(os.dup(filling[0]))
    except OSError:
        pass
    try:
        yield
    finally:
        for file in filling:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_who_comes_without_a_descriptor_left_is_turned_away(door, tmp_path):
    path = tmp_path / "driver.sock"
    with connected(path) as one, connected(path) as other, no_descriptors():
        for client in (one, other):
            assert door.admit() is None
            assert not door.is_stuck
            assert decode_reply(client.recv(1024)).message == FAREWELL
            assert client.recv(1) == b""
        assert door.admit() is None
    with connected(tmp_path / "driver.sock"):
        door.admit().close()


class Thief:
    """A socket that listens, while another thread opens a file before it accepts."""

    def __init__(self, real):
        self.real, self.stolen = real, []
        self.fileno, self.close = real.fileno, real.close

    def accept(self):
        with suppress(OSError):
            self.stolen.append(os.dup(self.real.fileno()))
        return self.real.accept()


def test_a_descriptor_that_another_thread_took_in_between_ends_nothing(door, tmp_path):
    door._socket = thief = Thief(door._socket)
    with connected(tmp_path / "driver.sock") as client:
        with no_descriptors():
            for _ in range(3):
                assert door.admit() is None
                assert door.is_stuck
            os.close(thief.stolen.pop())
            thief.accept = thief.real.accept
            assert door.admit() is None
            assert not door.is_stuck
        assert decode_reply(client.recv(1024)).message == FAREWELL
        assert client.recv(1) == b""


def test_a_client_has_no_name_where_no_memory_is_left_to_read_it(monkeypatch):
    def refuse(*_, **__):
        raise MemoryError

    monkeypatch.setattr(listening.Path, "read_text", refuse)
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        assert caller_of(one, 3).name == "?"
