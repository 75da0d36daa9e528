"""Clock of deadlines, which counts through suspension."""

import time

WAIT_MAX_S = 1.0
"""Longest single wait. A signal that comes right before a wait, or that another thread gets, does
not end it, and its handler runs only then."""


def now_ns() -> int:
    """Return `CLOCK_BOOTTIME` in nanoseconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def wait_s(until_ns: int | None) -> float:
    """Return the seconds to wait for a time, or for none: at most `WAIT_MAX_S`."""
    return (
        WAIT_MAX_S if until_ns is None else min(max(0.0, (until_ns - now_ns()) / 1e9), WAIT_MAX_S)
    )
