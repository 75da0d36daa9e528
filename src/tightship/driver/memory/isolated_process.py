"""Driver's side of a process that maps clients' files."""

import array
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys

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
from tightship.driver.types.pools import Pool
from tightship.driver.types.status import failure

PATIENCE_S = 5.0
"""Seconds allowed for an order, because reading some files never ends."""
REAP_S = 1.0
"""Seconds to wait for a killed process, which may hang in the kernel."""

SHORT = "The file of a pool has become shorter, or cannot be read."


class UnansweredError(Exception):
    """The process has died or exceeded the time for an order."""


class IsolatedProcess:
    """Process with memory shared with the driver; takes orders from one thread at a time.

    Attributes:
        pools: Identifiers of the pools that it has mapped.
    """

    def __init__(self) -> None:
        """Start the process.

        Raises:
            OSError: The system refuses.
        """
        file = new_segment(STAGING_BYTES)
        try:
            self._staging = np.frombuffer(mmap.mmap(file, STAGING_BYTES), np.uint8)
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                self.process = subprocess.Popen(
                    [sys.executable, "-I", "-S", isolated_worker.__file__,
                     str(theirs.fileno()), str(file)],
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(), file),
                )  # fmt: skip
            except OSError:
                ours.close()
                raise
            finally:
                theirs.close()
        finally:
            os.close(file)
        self._connection = ours
        self.wait_at_most(PATIENCE_S)
        self._is_late = False
        self.pools: set[int] = set()

    def wait_at_most(self, patience_s: float) -> None:
        """Limit the time for an order in the kernel; Python's timeout would make `drop` wait."""
        limit = struct.pack("@ll", int(patience_s), int(patience_s % 1 * 1e6))
        for way in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self._connection.setsockopt(socket.SOL_SOCKET, way, limit)

    def have(self, pool: Pool) -> None:
        """Map a pool, if it is not mapped.

        Raises:
            DriverError: GENERAL_FAILURE: it cannot be mapped.
            UnansweredError: The process does not answer.
        """
        if pool.identifier in self.pools:
            return
        extent = pool.extent
        if self._order(MAP, pool, extent.offset_bytes, extent.size_bytes) != DONE:
            raise failure(f"A pool of {extent.size_bytes} bytes cannot be mapped.")
        self.pools.add(pool.identifier)

    def read(self, pool: Pool, start: int, room: NDArray[np.uint8]) -> None:
        """Fill `room`, of at most `STAGING_BYTES`, from a mapped pool; raises as `have`."""
        self._copy(READ, pool, start, room.size)
        room[...] = self._staging[: room.size]

    def write(self, pool: Pool, start: int, data: NDArray[np.uint8]) -> None:
        """Write at most `STAGING_BYTES` to a mapped pool; raises as `have`."""
        self._staging[: data.size] = data
        self._copy(WRITE, pool, start, data.size)

    def _copy(self, what: int, pool: Pool, start: int, count: int) -> None:
        if self._order(what, pool, start, count) != DONE:
            raise failure("The file of a pool has become shorter than the pool.")

    def _order(self, what: int, pool: Pool, start: int, count: int) -> bytes:
        data = ORDER.pack(what, pool.identifier, start, count, pool.is_writable)
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [pool.handle]))
        try:
            self._connection.sendmsg([data], [rights] if what == MAP else [])
            answer = self._connection.recv(1)
        except OSError as error:
            self._is_late = isinstance(error, BlockingIOError)
            raise UnansweredError from None
        if not answer:
            raise UnansweredError
        return answer

    def drop(self, pool: Pool) -> bool:
        """Unmap a pool after the current order; return False if the queue is full."""
        data = ORDER.pack(DROP, pool.identifier, 0, 0, pool.is_writable)
        try:
            self._connection.sendmsg([data], [], socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:  # it is dead, which its next use reports
            pass
        return True

    def end(self) -> str | None:
        """End the process; return the fault of the file in its last order, or None.

        Raises:
            TimeoutExpired: It hangs in the kernel.
        """
        self._connection.close()
        is_stopped = self._is_stopped
        try:
            code = self.process.wait(0 if self._is_late else REAP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait(REAP_S)
        if self._is_late and not is_stopped:
            return f"The file of a pool does not answer within {PATIENCE_S:g} s."
        return SHORT if code == -signal.SIGBUS else None

    @property
    def _is_stopped(self) -> bool:
        """Whether a signal has stopped it, so that the file is not at fault."""
        what = os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT
        found = os.waitid(os.P_PID, self.process.pid, what)
        return found is not None and found.si_code == os.CLD_STOPPED
