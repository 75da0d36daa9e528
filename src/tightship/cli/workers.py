"""Starts processes that are measured together, sends them jobs, and ends them."""

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tightship.cli import worker
from tightship.errors import TightshipError

NONE = -1
Process = subprocess.Popen[bytes] | BaseProcess
STARTS = ("spawn", "fork", "forkserver")
Told = Callable[[int, int], None]


class WorkerError(TightshipError):
    """A process failed at its job, or has died."""


class Asked:
    """The parent's end of a process that does jobs."""

    def __init__(self, process: Process, near: socket.socket, name: str) -> None:
        assert process.pid is not None
        self.pid = process.pid
        self._process = process
        self._name = name
        self._lines = near.makefile("rw")

    def send(self, job: Mapping[str, Any]) -> None:
        """Send a job; if the process has died, `answer` raises the error."""
        with suppress(ConnectionError):
            self._lines.write(json.dumps(job) + "\n")
            self._lines.flush()

    def answer(self, told: Told | None = None) -> dict[str, Any]:
        """Wait for the answer to the oldest job; `told` is called with its progress.

        Raises:
            WorkerError: The job failed, or the process has died.
        """
        while True:
            found = self._read()
            if "error" in found:
                raise WorkerError(f"{self._name}: {found['error']}")
            if "done" not in found:
                return found
            if told is not None:
                told(found["done"], found["total"])

    def _read(self) -> dict[str, Any]:
        line = ""
        with suppress(ConnectionError):
            line = self._lines.readline()
        if not line:
            raise WorkerError(f"{self._name} {_end(self._process)}")
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, job: Mapping[str, Any], told: Told | None = None) -> dict[str, Any]:
        """Send a job and wait for the answer.

        Raises:
            WorkerError: As `answer`.
        """
        self.send(job)
        return self.answer(told)


@contextmanager
def workers(start: str, count: int, name: str) -> Iterator[Sequence[Asked]]:
    """Start processes by a method of `STARTS`; they end with the block, however it ends."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(_worker(start, f"{name}, process {number} of {count}"))
            for number in range(1, count + 1)
        ]


@contextmanager
def worker_alone(name: str) -> Iterator[Asked]:
    """Start one new process, which ends with the block."""
    with _worker("spawn", name) as asked:
        yield asked


@contextmanager
def _worker(start: str, name: str) -> Iterator[Asked]:
    near, far = socket.socketpair()
    with near:
        with far:
            process = _new(far) if start == "spawn" else _forked(start, near, far)
        try:
            yield Asked(process, near, name)
        finally:
            process.kill()
            _wait(process)


def _new(far: socket.socket) -> "subprocess.Popen[bytes]":
    """Start a process in its own group, so that an interrupt reaches only its parent."""
    command = [sys.executable, "-P", str(Path(worker.__file__)), str(far.fileno())]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, pass_fds=(far.fileno(),), process_group=0
    )


def _forked(start: str, near: socket.socket, far: socket.socket) -> BaseProcess:
    context = multiprocessing.get_context(start)
    inherited = near.fileno() if start == "fork" else NONE
    process: BaseProcess = context.Process(  # type: ignore[attr-defined]
        target=_serve, args=(far, inherited), daemon=True
    )
    process.start()
    return process


def _serve(far: socket.socket, near: int) -> None:
    """Run jobs in a forked process, after closing the inherited end that belongs to the parent."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if near != NONE:
        os.close(near)
    worker.serve(far.detach())


def _wait(process: Process) -> int:
    """Wait for a process and return its exit code, or minus the signal that ended it."""
    if isinstance(process, subprocess.Popen):
        return process.wait()
    process.join()
    return process.exitcode or 0


def _end(process: Process) -> str:
    """Describe how a process ended that has closed its socket."""
    code = _wait(process)
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
