"""Limits of a run: time, bytes outside the plan, and concurrent steps."""

import time
from dataclasses import dataclass, field
from typing import Protocol

from tightship._core import DynamicMemory, StopFlag
from tightship.errors import DeadlineError, InputError, StoppedError

TIMEOUT_S_MAX = 10**9
"""Seconds that fit the core's clock: 30 years."""


class DynamicRuns(Protocol):
    """Gives each run the memory of its steps outside the plan."""

    limit_bytes: int | None

    def begin(self) -> DynamicMemory:
        """Return the memory of a run that begins."""

    def end(self, memory: DynamicMemory) -> None:
        """End the run; arrays that are alive are the caller's."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run; the first two end it early, while it waits and between steps.

    Attributes:
        stop: Flag that any thread may set to end the run.
        deadline_ns: Time of `time.monotonic_ns` at which the run ends; None for no limit.
        dynamic: Memory of steps outside the plan, with its limit; None for NumPy's, without one.
        workers: Native steps that may run at once, each on one thread.
    """

    stop: StopFlag = field(default_factory=StopFlag)
    deadline_ns: int | None = None
    dynamic: DynamicRuns | None = None
    workers: int = 1

    def check(self) -> None:
        """Raise as `end` does if the stop flag is set or the deadline has passed."""
        if self.stop.is_set():
            end("stopped")
        if self.deadline_ns is not None and time.monotonic_ns() >= self.deadline_ns:
            end("deadline")


def end(outcome: str) -> None:
    """Raise the error of a native run's outcome, unless it is "done".

    Raises:
        StoppedError: The stop flag was set.
        DeadlineError: The deadline passed.
    """
    if outcome == "stopped":
        raise StoppedError("The run was stopped before its last step: its stop flag was set.")
    if outcome == "deadline":
        raise DeadlineError("The run was stopped before its last step: its deadline passed.")


def deadline_of(timeout_s: float | None) -> int | None:
    """Return the time of `time.monotonic_ns` at which a run that begins now ends; None for never.

    Raises:
        InputError: The seconds are not a number, or do not fit a clock.
    """
    if timeout_s is None:
        return None
    if not abs(timeout_s) <= TIMEOUT_S_MAX:
        raise InputError(f"`timeout_s` is {timeout_s}; give seconds, at most {TIMEOUT_S_MAX}.")
    return time.monotonic_ns() + int(timeout_s * 1e9)


UNLIMITED = Limits()
"""Limits of a run that nothing ends."""


def limits_of(timeout_s: float | None, stop: StopFlag | None) -> Limits:
    """Return the limits of a run that begins now.

    Args:
        timeout_s: Seconds after which it ends; None for no limit.
        stop: Flag that ends it when another thread sets it.

    Raises:
        InputError: As from `deadline_of`.
    """
    if timeout_s is None and stop is None:
        return UNLIMITED
    return Limits(StopFlag() if stop is None else stop, deadline_of(timeout_s))
