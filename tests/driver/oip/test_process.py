"""A driver that cannot begin leaves nothing open."""

import os
import socket

import pytest

from tightship.driver.process import Driver, Listening
from tightship.errors import InputError

pytest.importorskip("grpc")
pytest.importorskip("httptools")


def sockets():
    """How many this process has."""
    return sum(link(each).startswith("socket:") for each in os.listdir("/proc/self/fd"))


def link(number):
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except FileNotFoundError:  # of the list itself
        return ""


@pytest.mark.parametrize("what", ["grpc", "socket"])
def test_what_one_face_has_opened_is_closed_when_another_cannot_listen(tmp_path, what):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "127.0.0.1", (taken.getsockname()[1] if what == "grpc" else 0)
        if what == "socket":
            (tmp_path / "driver.sock").write_text("no socket")
        where = Listening(tmp_path / "driver.sock", http=("127.0.0.1", 0), grpc=address)
        with pytest.raises(InputError):
            Driver(dict, where)  # grpcio keeps some of its own
        before = sockets()
        with pytest.raises(InputError):
            Driver(dict, where)
        assert sockets() <= before
