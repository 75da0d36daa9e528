"""The clock of deadlines, which counts through suspension, and waits for a moment of it."""

import time

WAIT_MAX_S = 3600.0
"""The most that is waited at once; the kernel takes no wait of more than 24 days."""


def now_ns() -> int:
    """Nanoseconds of `CLOCK_BOOTTIME`."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def wait_s(until_ns: int | None) -> float | None:
    """Seconds to wait for a moment, or for an hour before it; None for no moment."""
    return None if until_ns is None else min(max(0.0, (until_ns - now_ns()) / 1e9), WAIT_MAX_S)
