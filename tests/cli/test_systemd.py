"""Sockets that systemd passes, and what it is told; by its own program where that is installed."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import closing
from pathlib import Path

import onnx
import pytest

from tests.driver.oip.serve_process import COMMAND, MODEL
from tests.models import parse
from tightship.cli import systemd as module
from tightship.cli.argument_types import address_or_systemd
from tightship.cli.systemd import host_of, listening_socket, tell
from tightship.errors import InputError

ACTIVATE = shutil.which("systemd-socket-activate")
UNITS = Path(__file__).parents[2] / "examples" / "server"


@pytest.fixture
def passed(monkeypatch):
    """A function that passes a socket to this process as systemd does."""

    def given(found, count=1):
        monkeypatch.setattr(module, "FIRST", os.dup(found.fileno()))
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        monkeypatch.setenv("LISTEN_FDS", str(count))
        monkeypatch.setenv("LISTEN_FDNAMES", "http")

    return given


def test_the_socket_that_was_passed_is_taken_and_no_child_takes_it(passed):
    with socket.create_server(("127.0.0.1", 0)) as found:
        passed(found)
        with listening_socket() as taken:
            assert taken.getsockname() == found.getsockname()
            assert not taken.get_inheritable()
            assert host_of(taken) == "127.0.0.1"
    assert not [name for name in os.environ if name.startswith("LISTEN_")]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (socket.socket, "does not listen for TCP; write `ListenStream=8000`"),
        (lambda: socket.socket(socket.AF_UNIX), "does not listen for TCP"),
        (lambda: socket.socket(type=socket.SOCK_DGRAM), "does not listen for TCP"),
        (tempfile.TemporaryFile, "a file that is not a socket"),
    ],
)
def test_another_kind_of_file_is_refused(passed, kind, said):
    with kind() as found:
        passed(found)
        with pytest.raises(InputError, match=said):
            listening_socket()
    if "file" in said:
        os.close(module.FIRST)


@pytest.mark.parametrize(
    ("process", "count", "said"),
    [
        ("", "", "passed none; start it by a .socket unit"),
        ("1", "1", "passed none"),
        ("own", "0", "passed none"),
        ("own", "-1", "passed none"),
        ("own", "many", "passed none"),
        ("own", "2", "passed 2 sockets; `--http systemd` takes one"),
    ],
)
def test_none_or_several_are_refused(monkeypatch, process, count, said):
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()) if process == "own" else process)
    monkeypatch.setenv("LISTEN_FDS", count)
    with pytest.raises(InputError, match=said):
        listening_socket()


def test_the_option_takes_an_address_or_the_word():
    assert address_or_systemd("systemd") == "systemd"
    assert address_or_systemd("8000") == ("127.0.0.1", 8000)


@pytest.mark.parametrize("name", ["path", "@abstract"])
def test_systemd_is_told_the_state(monkeypatch, tmp_path, name):
    where = str(tmp_path / "notify") if name == "path" else f"\0tightship-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(where)
        monkeypatch.setenv("NOTIFY_SOCKET", where.replace("\0", "@"))
        tell("READY=1")
        assert manager.recv(100) == b"READY=1"
    tell("STOPPING=1")  # which is not delivered
    for value in ("", "relative"):
        monkeypatch.setenv("NOTIFY_SOCKET", value)
        tell("READY=1")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@pytest.mark.skipif(ACTIVATE is None, reason="needs systemd-socket-activate")
def test_a_server_is_started_by_its_first_client(tmp_path):
    pytest.importorskip("uvicorn")
    onnx.save(parse(MODEL), tmp_path / "neg.onnx")
    port = free_port()
    serve = [*COMMAND, str(tmp_path), "--socket", str(tmp_path / "socket"), "--http", "systemd"]
    command = [ACTIVATE, "-l", f"127.0.0.1:{port}", f"-EPYTHONPATH={':'.join(sys.path)}"]
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
        subprocess.Popen(
            [*command, f"-ENOTIFY_SOCKET={tmp_path}/notify", *serve],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        try:
            assert "Listening on" in process.stderr.readline()
            url = f"http://127.0.0.1:{port}/v2/health/ready"
            with closing(urllib.request.urlopen(url, timeout=30)) as response:
                assert json.load(response) == {"ready": True}
            assert manager.recv(100) == b"READY=1"
            assert f"http://127.0.0.1:{port}" in process.stdout.readline()
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
