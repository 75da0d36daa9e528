"""Fence that signals the end of an execution."""

import os
import select

from tightship.driver.memory.descriptor import fence_state
from tightship.driver.types.attachment import FenceState
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError
from tightship.public_calls import public_methods

WAIT_MAX_MS = 2**31 - 1
"""Longest wait of the kernel: 24 days."""


@public_methods
class Fence:
    """Signalled when an execution succeeds; an error if it fails or the driver dies."""

    def __init__(self, file: int) -> None:
        """Take over a descriptor."""
        self._file: int | None = file

    def fileno(self) -> int:
        """Return a descriptor that is readable, or hung up, once the execution has ended.

        Raises:
            ValueError: The fence is closed.
        """
        if self._file is None:
            raise ValueError("The fence is closed.")
        return self._file

    @property
    def state(self) -> FenceState:
        """Current state."""
        return fence_state(self.fileno())

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the signal.

        Raises:
            DriverError: GENERAL_FAILURE: the execution failed, or the driver is gone;
                MISSED_DEADLINE_TRANSIENT: the time is over.
        """
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        poll.poll(None if timeout_s is None else min(timeout_s * 1000, WAIT_MAX_MS))
        state = self.state
        if state is FenceState.PENDING:
            raise DriverError(
                f"The execution has not ended after {timeout_s} s.",
                status=ErrorStatus.MISSED_DEADLINE_TRANSIENT,
            )
        if state is FenceState.ERROR:
            raise DriverError(
                "The execution failed, or the driver is gone.", status=ErrorStatus.GENERAL_FAILURE
            )

    def close(self) -> None:
        """Close the descriptor. Harmless when repeated."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> "Fence":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
