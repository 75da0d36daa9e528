"""Deadlines on the clock that counts through suspension, and times that something may take."""

import time

from tightship.driver.types.status import NO_TIME


def after(timeout_s: float | None) -> int:
    """Nanoseconds of `CLOCK_BOOTTIME` so many seconds from now; `NO_TIME` for None."""
    if timeout_s is None:
        return NO_TIME
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) + max(0, int(timeout_s * 1e9))


def lasting(timeout_s: float | None) -> int:
    """So many seconds in nanoseconds; `NO_TIME` for None."""
    return NO_TIME if timeout_s is None else max(0, int(timeout_s * 1e9))
