"""Deadlines on the clock that counts through suspension."""

import time

from tightship.driver.rules.status import NO_TIME


def after(timeout_s: float | None) -> int:
    """Nanoseconds of `CLOCK_BOOTTIME` so many seconds from now; `NO_TIME` for None."""
    if timeout_s is None:
        return NO_TIME
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) + max(0, int(timeout_s * 1e9))
