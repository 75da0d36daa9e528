"""Clock of deadlines, which counts through suspension."""

import time

WAIT_MAX_S = 3600.0
"""Longest single wait; the kernel accepts at most 24 days."""


def now_ns() -> int:
    """Return `CLOCK_BOOTTIME` in nanoseconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def wait_s(until_ns: int | None) -> float | None:
    """Return the seconds until a time, at most `WAIT_MAX_S`; None for no time."""
    return None if until_ns is None else min(max(0.0, (until_ns - now_ns()) / 1e9), WAIT_MAX_S)
