"""Processes that are measured together: all started, all asked, all gone at the end."""

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
    """A process could not do its job, or has died."""


class Asked:
    """The near end of a process that does jobs."""

    def __init__(self, process: Process, near: socket.socket, name: str) -> None:
        assert process.pid is not None
        self.pid = process.pid
        self._process = process
        self._name = name
        self._lines = near.makefile("rw")

    def send(self, job: Mapping[str, Any]) -> None:
        """Give it a job; if it has died, `answer` says so."""
        with suppress(ConnectionError):
            self._lines.write(json.dumps(job) + "\n")
            self._lines.flush()

    def answer(self, told: Told | None = None) -> dict[str, Any]:
        """What it answers to its oldest job; `told` hears how far it is.

        Raises:
            WorkerError: It failed; or died, by itself or by a signal.
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
        """Give it a job and wait for the answer.

        Raises:
            WorkerError: As `answer`.
        """
        self.send(job)
        return self.answer(told)


@contextmanager
def workers(start: str, count: int, name: str) -> Iterator[Sequence[Asked]]:
    """Processes started by a method of `STARTS`; however this ends, they end with it."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(_worker(start, f"{name}, process {number} of {count}"))
            for number in range(1, count + 1)
        ]


@contextmanager
def worker_alone(name: str) -> Iterator[Asked]:
    """One new process."""
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
    """A process of its own group: an interrupt of the terminal reaches only who started it."""
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
    """What a forked process does; the other end is not its to keep open."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if near != NONE:
        os.close(near)
    worker.serve(far.detach())


def _wait(process: Process) -> int:
    """Wait for a process; its exit code, or minus the signal that ended it."""
    if isinstance(process, subprocess.Popen):
        return process.wait()
    process.join()
    return process.exitcode or 0


def _end(process: Process) -> str:
    """How a process that has closed its end came to die."""
    code = _wait(process)
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
