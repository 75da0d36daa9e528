"""Deadlines and durations in nanoseconds; the clock goes on while the system is suspended."""

import time

from tightship.driver.types.status import NO_TIME


def after(timeout_s: float | None) -> int:
    """Return the `CLOCK_BOOTTIME` in `timeout_s` seconds, in nanoseconds; `NO_TIME` for None."""
    if timeout_s is None:
        return NO_TIME
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) + max(0, int(timeout_s * 1e9))


def lasting(timeout_s: float | None) -> int:
    """Convert seconds to nanoseconds; None to `NO_TIME`."""
    return NO_TIME if timeout_s is None else max(0, int(timeout_s * 1e9))
