"""`tightship serve` in a process of its own, watched from outside: memory, descriptors, log."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import onnx

from tests.models import parse

COMMAND = (sys.executable, "-m", "tightship.cli", "serve")
PATIENCE_S = 30
LENGTH = 1 << 16
MODEL = f"m (float[{LENGTH}] x) => (float[{LENGTH}] y) {{ y = Neg(x) }}"
"""`neg`, whose tensors have 256 KiB."""


class Observed:
    """A running server: its process, where it listens, and what the system says of it."""

    def __init__(self, process, folder):
        self.process, self._log = process, folder / "log"
        self.socket = folder / "socket"
        places = process.stdout.readline().partition(" at ")[2].split(",")
        self.http_port, self.grpc_port = (int(each.rpartition(":")[2]) for each in places[1:])

    def connected(self, port):
        connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    @property
    def anonymous_bytes(self):
        """Of the process: memory that no file is behind."""
        text = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return 1024 * int(re.search(r"Anonymous:\s+(\d+)", text)[1])

    @property
    def descriptor_count(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @property
    def log(self):
        return self._log.read_text()


@contextmanager
def observed(folder, *options, descriptors_max=None):
    """A server of the model `neg` over HTTP, gRPC and its socket that ends with the block.

    It may have so many descriptors, where a number is given.
    """
    model = folder / "neg.onnx"
    onnx.save(parse(MODEL), model)
    listening = ("--socket", folder / "socket", "--http", "0", "--grpc", "0")
    limited = ()
    if descriptors_max is not None:
        limited = ("sh", "-c", f'ulimit -n {descriptors_max}; exec "$0" "$@"')
    command = [*limited, *COMMAND, *map(str, (model, *listening, *options))]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            yield Observed(process, folder)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE_S)
            finally:
                process.kill()


def settles(read, limit):
    """What `read` gives once that is at most a limit, or last before patience ends."""
    until = time.monotonic() + PATIENCE_S
    while (found := read()) > limit and time.monotonic() < until:
        time.sleep(0.1)
    return found
