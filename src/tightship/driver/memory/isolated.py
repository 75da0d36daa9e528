"""Pools of mode ISOLATED: worker processes map them, so that a bad file cannot kill the driver."""

import logging
import subprocess
import threading
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tightship.driver.memory.isolated_process import IsolatedProcess, UnansweredError
from tightship.driver.memory.isolated_worker import STAGING_BYTES
from tightship.driver.types.pools import Pool
from tightship.driver.types.status import failure
from tightship.errors import DriverError

_LOG = logging.getLogger(__name__)

IDLE_MAX = 2
"""Idle processes that are kept."""
HANGING_MAX = 8
"""Processes that could not be killed, above which no other is started."""


class Isolated:
    """Access to isolated pools. May be used from several threads.

    Each call uses a process of its own, idle or new, so that a file that does not answer delays
    only its own users.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[IsolatedProcess] = []
        self._busy: set[IsolatedProcess] = set()
        self._gone: list[tuple[IsolatedProcess, Pool]] = []
        self._hanging: list[subprocess.Popen[bytes]] = []

    def read(self, pool: Pool, start: int, room: NDArray[np.uint8]) -> None:
        """Fill `room` with bytes of a pool.

        Raises:
            DriverError: GENERAL_FAILURE: the file cannot be mapped, has become shorter, or does not
                answer.
        """
        for done in range(0, room.size, STAGING_BYTES):
            part = room[done : done + STAGING_BYTES]
            self._have(
                pool, partial(IsolatedProcess.read, pool=pool, start=start + done, room=part)
            )

    def write(self, pool: Pool, start: int, data: NDArray[np.uint8]) -> None:
        """Write bytes to a pool; raises as `read`."""
        for done in range(0, data.size, STAGING_BYTES):
            part = data[done : done + STAGING_BYTES]
            self._have(
                pool, partial(IsolatedProcess.write, pool=pool, start=start + done, data=part)
            )

    def check(self, pool: Pool) -> None:
        """Map a pool; raises as `read`."""
        self._have(pool, partial(IsolatedProcess.have, pool=pool))

    def drop(self, pool: Pool) -> None:
        """Unmap a pool that is no longer used, without waiting."""
        with self._lock:
            for worker in (*self._idle, *self._busy):
                if pool.identifier in worker.pools:
                    worker.pools.remove(pool.identifier)
                    self._gone.append((worker, pool))
            self._drop_gone()

    def _have(self, pool: Pool, work: Callable[[IsolatedProcess], None]) -> None:
        """Run `work` on a process that has the pool mapped.

        A process that was killed or stopped from outside is replaced once.
        """
        for _ in range(2):
            worker = self._taken(pool)
            try:
                worker.have(pool)
                work(worker)
            except UnansweredError:
                reason = self._end(worker)
            except DriverError:
                self._put_back(worker)
                raise
            else:
                self._put_back(worker)
                return
            if reason is not None:
                raise failure(reason)
        raise failure("Two processes that map a pool were killed, one after the other.")

    def _taken(self, pool: Pool) -> IsolatedProcess:
        """Reserve a process, preferably one that has the pool mapped."""
        with self._lock:
            if self._idle:
                index = max(
                    range(len(self._idle)), key=lambda at: pool.identifier in self._idle[at].pools
                )
                worker = self._idle.pop(index)
                self._busy.add(worker)
                return worker
            self._hanging = [each for each in self._hanging if each.poll() is None]
            if len(self._hanging) >= HANGING_MAX:
                raise failure(f"{HANGING_MAX} processes hang on files that do not answer.")
        try:
            worker = IsolatedProcess()
        except OSError as error:
            raise failure(f"No isolated worker can be started: {error.strerror}.") from None
        with self._lock:
            self._busy.add(worker)
        return worker

    def _put_back(self, worker: IsolatedProcess) -> None:
        with self._lock:
            self._drop_gone()
            is_kept = len(self._idle) < IDLE_MAX
            if is_kept:
                self._busy.remove(worker)
                self._idle.append(worker)
        if not is_kept:
            self._end(worker)

    def _drop_gone(self) -> None:
        self._gone = [(worker, pool) for worker, pool in self._gone if not worker.drop(pool)]

    def _end(self, worker: IsolatedProcess) -> str | None:
        """End a process and return the file's fault, as `IsolatedProcess.end`."""
        with self._lock:
            self._busy.discard(worker)
            self._gone = [each for each in self._gone if each[0] is not worker]
        try:
            reason = worker.end()
        except subprocess.TimeoutExpired:
            reason = "The file of a pool does not answer; the process that maps it hangs."
            with self._lock:
                self._hanging.append(worker.process)
        if (code := worker.process.returncode) != 0:
            _LOG.warning("A worker of isolated pools ended with %s; the next use starts one.", code)
        return reason

    def close(self) -> None:
        """End the idle processes."""
        while self._idle:
            self._end(self._idle.pop())
