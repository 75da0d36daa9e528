"""Pools of mode ISOLATED: another process maps them, and dies in the driver's place."""

import array
import logging
import mmap
import os
import socket
import subprocess
import sys
import threading
from collections import deque

import numpy as np
from numpy.typing import NDArray

from tightship.driver.memory import isolated_worker
from tightship.driver.memory.descriptor import new_segment
from tightship.driver.memory.isolated_worker import (
    DONE,
    DROP,
    MAP,
    ORDER,
    READ,
    STAGING_BYTES,
    WRITE,
)
from tightship.driver.rules.pools import Pool
from tightship.driver.rules.status import failure

_LOG = logging.getLogger(__name__)

PATIENCE_S = 5.0
"""How long an order may take: a file may lie where reading it never ends."""


class _Worker:
    """A process, and the memory that both have."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        file = -1
        try:
            file = new_segment(STAGING_BYTES)
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", isolated_worker.__file__,
                 str(theirs.fileno()), str(file)],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), file),
            )  # fmt: skip
            self.staging = np.frombuffer(mmap.mmap(file, STAGING_BYTES), np.uint8)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
            if file >= 0:
                os.close(file)
        self.connection = ours
        self.connection.settimeout(PATIENCE_S)
        self.pools: set[int] = set()

    def order(self, what: int, pool: Pool, start: int, count: int) -> bytes:
        """Its answer; nothing if it has died, or takes too long."""
        data = ORDER.pack(what, pool.identifier, start, count, pool.is_writable)
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [pool.handle]))
        try:
            self.connection.sendmsg([data], [rights] if what == MAP else [])
            return self.connection.recv(1)
        except OSError:
            return b""

    def end(self) -> int:
        """End it; how it ended, which is minus a signal if one killed it."""
        self.connection.close()
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Isolated:
    """Bytes of isolated pools; a worker is started when one is needed, and again when it died.

    May be used from several threads; one order is carried out at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._gone: deque[Pool] = deque()

    def read(self, pool: Pool, start: int, room: NDArray[np.uint8]) -> None:
        """Fill `room` with the bytes of a pool from `start` on.

        Raises:
            DriverError: GENERAL_FAILURE: the file cannot be mapped, or has become shorter.
        """
        with self._lock:
            for done in range(0, room.size, STAGING_BYTES):
                part = room[done : done + STAGING_BYTES]
                worker = self._carry_out(READ, pool, start + done, part.size)
                part[...] = worker.staging[: part.size]

    def write(self, pool: Pool, start: int, data: NDArray[np.uint8]) -> None:
        """Put bytes into a pool from `start` on; raises as `read`."""
        with self._lock:
            for done in range(0, data.size, STAGING_BYTES):
                part = data[done : done + STAGING_BYTES]
                self._ready(pool).staging[: part.size] = part
                self._carry_out(WRITE, pool, start + done, part.size)

    def check(self, pool: Pool) -> None:
        """Map a pool now; raises as `read`."""
        with self._lock:
            self._ready(pool)

    def drop(self, pool: Pool) -> None:
        """Have a pool unmapped, after what is under way; nobody uses it any more."""
        self._gone.append(pool)
        if self._lock.acquire(blocking=False):
            try:
                self._drop_gone()
            finally:
                self._lock.release()

    def _ready(self, pool: Pool) -> _Worker:
        """A worker that has the pool mapped."""
        self._drop_gone()
        if self._worker is None:
            try:
                self._worker = _Worker()
            except OSError as error:
                raise failure(f"No isolated worker can be started: {error.strerror}.") from None
        worker, extent = self._worker, pool.extent
        if pool.identifier not in worker.pools:
            answer = worker.order(MAP, pool, extent.offset_bytes, extent.size_bytes)
            if answer and answer != DONE:
                raise failure(f"A pool of {extent.size_bytes} bytes cannot be mapped.")
            self._check(answer)
            worker.pools.add(pool.identifier)
        return worker

    def _carry_out(self, what: int, pool: Pool, start: int, count: int) -> _Worker:
        worker = self._ready(pool)
        self._check(worker.order(what, pool, start, count))
        return worker

    def _check(self, answer: bytes) -> None:
        if not answer:
            self._end()
            raise failure("The file of a pool has become shorter, or cannot be read.")

    def _drop_gone(self) -> None:
        while self._gone:
            pool, worker = self._gone.popleft(), self._worker
            if worker is None or pool.identifier not in worker.pools:
                continue
            worker.pools.remove(pool.identifier)
            if not worker.order(DROP, pool, 0, 0):
                self._end()

    def _end(self) -> None:
        assert self._worker is not None
        code = self._worker.end()
        self._worker = None
        _LOG.warning("A worker of isolated pools ended with %d; the next use starts one.", code)

    def close(self) -> None:
        """End the worker."""
        with self._lock:
            if self._worker is not None:
                self._worker.end()
                self._worker = None
