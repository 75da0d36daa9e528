"""`tightship serve` in a process of its own: calls to it, and what the system says of it."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path

import onnx

from tests.models import parse

COMMAND = (sys.executable, "-m", "tightship.cli", "serve")
PATIENCE_S = 30
LENGTH = 1 << 16
MODEL = f"m (float[{LENGTH}] x) => (float[{LENGTH}] y) {{ y = Neg(x) }}"
"""`neg`, whose tensors have 256 KiB."""


class Serve:
    """A running server: its process, where it listens, and what it holds."""

    def __init__(self, process, log):
        self.process, self._log = process, log
        places = process.stdout.readline().partition(" at ")[2].split(",")
        self.socket, *others = (each.strip() for each in places)
        named = dict(each.split("://") for each in others)
        self.schemes = set(named)
        self.http, self.grpc = (named.get(each, named.get(f"{each}s")) for each in ("http", "grpc"))

    @property
    def http_port(self):
        return int(self.http.rpartition(":")[2])

    @property
    def grpc_port(self):
        return int(self.grpc.rpartition(":")[2])

    def connected(self, port):
        """A connection that sends each piece at once."""
        connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def ask(self, method, target, body=None, **headers):
        """The status, headers and body of a response, by a connection of its own."""
        with closing(http.client.HTTPConnection(self.http, timeout=60)) as connection:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def get(self, target):
        """The status, and the body as JSON."""
        status, _, body = self.ask("GET", target)
        return status, json.loads(body)

    def post(self, target, said):
        """The status, and the body as JSON, None where it is empty."""
        status, _, body = self.ask("POST", target, json.dumps(said))
        return status, json.loads(body) if body else None

    @property
    def anonymous_bytes(self):
        """Memory of the process that no file is behind."""
        text = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return 1024 * int(re.search(r"Anonymous:\s+(\d+)", text)[1])

    @property
    def descriptor_count(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @contextmanager
    def stopped(self):
        """Keep every thread of the process from running within the block."""
        self.process.send_signal(signal.SIGSTOP)
        # A signal stops threads one by one: the parent hears of it when the last has stopped.
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    @property
    def log(self):
        """Text written to standard error so far."""
        return self._log.read_text()


@contextmanager
def serve(*options, descriptors_max=None, before=""):
    """A server over HTTP, gRPC and its socket, given models and options; it ends with the block.

    It may have so many descriptors, where a number is given. Its process first runs the commands of
    `before`, a line of the shell.
    """
    if descriptors_max is not None:
        before = f"ulimit -n {descriptors_max}"
    limited = ("sh", "-c", f'{before}; exec "$0" "$@"') if before else ()
    with tempfile.TemporaryDirectory() as folder:
        endpoints = ("--socket", f"{folder}/driver.sock", "--http", "0", "--grpc", "0")
        command = [*limited, *COMMAND, *endpoints, *map(str, options)]
        path = Path(folder) / "log"
        with (
            path.open("w") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
        ):
            try:
                yield Serve(process, path)
            finally:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(PATIENCE_S)
                finally:
                    process.kill()


def serve_neg(folder, *options, **given):
    """Serve the model `neg` as `serve` does, with its file in a folder."""
    onnx.save(parse(MODEL), folder / "neg.onnx")
    return serve(folder / "neg.onnx", *options, **given)


def settles(read, limit):
    """Return the value of `read` once it is at most `limit`, or the last value in time."""
    until = time.monotonic() + PATIENCE_S
    while (found := read()) > limit and time.monotonic() < until:
        time.sleep(0.1)
    return found
