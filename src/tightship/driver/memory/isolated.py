"""Pools of mode ISOLATED: another process maps them, and dies in the driver's place."""

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
"""Processes that are kept although nobody uses them."""
HANGING_MAX = 8
"""Processes that could not be killed; with so many, no other is started."""


class Isolated:
    """Bytes of isolated pools. May be used from several threads.

    Whoever gives orders has a process to himself meanwhile, one that is idle or a new one; so a
    file that does not answer keeps nobody waiting but those who use it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[IsolatedProcess] = []
        self._busy: set[IsolatedProcess] = set()
        self._gone: list[tuple[IsolatedProcess, Pool]] = []
        self._hanging: list[subprocess.Popen[bytes]] = []

    def read(self, pool: Pool, start: int, room: NDArray[np.uint8]) -> None:
        """Fill `room` with the bytes of a pool from `start` on.

        Raises:
            DriverError: GENERAL_FAILURE: the file cannot be mapped, has become shorter, or does
                not answer.
        """
        for done in range(0, room.size, STAGING_BYTES):
            part = room[done : done + STAGING_BYTES]
            self._have(
                pool, partial(IsolatedProcess.read, pool=pool, start=start + done, room=part)
            )

    def write(self, pool: Pool, start: int, data: NDArray[np.uint8]) -> None:
        """Put bytes into a pool from `start` on; raises as `read`."""
        for done in range(0, data.size, STAGING_BYTES):
            part = data[done : done + STAGING_BYTES]
            self._have(
                pool, partial(IsolatedProcess.write, pool=pool, start=start + done, data=part)
            )

    def check(self, pool: Pool) -> None:
        """Map a pool now; raises as `read`."""
        self._have(pool, partial(IsolatedProcess.have, pool=pool))

    def drop(self, pool: Pool) -> None:
        """Have a pool unmapped, which nobody uses any more; waits for nothing."""
        with self._lock:
            for worker in (*self._idle, *self._busy):
                if pool.identifier in worker.pools:
                    worker.pools.remove(pool.identifier)
                    self._gone.append((worker, pool))
            self._drop_gone()

    def _have(self, pool: Pool, work: Callable[[IsolatedProcess], None]) -> None:
        """Have something done by a process that has a pool mapped.

        If somebody has killed or stopped it, which is nobody's fault, another is asked.
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
        raise failure("The process that maps a pool was killed, and the next one as well.")

    def _taken(self, pool: Pool) -> IsolatedProcess:
        """A process for this thread, one that has the pool mapped if any has."""
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
                raise failure(f"{HANGING_MAX} processes wait for files that do not answer.")
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
        """As `IsolatedProcess.end`, also of one that hangs."""
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
        """End the processes; nobody uses them any more."""
        while self._idle:
            self._end(self._idle.pop())
