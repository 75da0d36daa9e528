"""What a run may take: time, bytes outside the plan, and steps at once."""

import time
from dataclasses import dataclass, field

from tightship._core import NumpyBound, StopFlag
from tightship.errors import DeadlineError, StoppedError


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may take. The first three end it early, while it waits and between two steps.

    Attributes:
        stop: A flag that anybody may set.
        deadline_ns: A time of `time.monotonic_ns`.
        dynamic: A bound on the arrays that steps outside the plan have alive.
        workers: How many native steps may run at once, each on one thread.
    """

    stop: StopFlag = field(default_factory=StopFlag)
    deadline_ns: int | None = None
    dynamic: NumpyBound | None = None
    workers: int = 1

    def check(self) -> None:
        """Raise what `end` raises if the run must not go on."""
        if self.stop.is_set():
            end("stopped")
        if self.deadline_ns is not None and time.monotonic_ns() >= self.deadline_ns:
            end("deadline")


def end(outcome: str) -> None:
    """Raise the error that a native run's outcome stands for; none for "done".

    Raises:
        StoppedError: The stop flag was set.
        DeadlineError: The deadline passed.
    """
    if outcome == "stopped":
        raise StoppedError("The run was stopped before its last step: its stop flag was set.")
    if outcome == "deadline":
        raise DeadlineError("The run was stopped before its last step: its deadline passed.")
