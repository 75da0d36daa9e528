"""Shared memory for calls and replies while the driver polls it."""

import os
from collections.abc import Callable, Sequence

from tightship._core import RingCaller
from tightship.driver.memory.descriptor import new_segment
from tightship.driver.protocol.messages import RING_BYTES, OpenRing
from tightship.errors import DriverError


def open_ring(offer: Callable[[OpenRing, Sequence[int]], object]) -> RingCaller | None:
    """Open a ring with the driver; None if it refuses or memory is short.

    Args:
        offer: Makes a call with a file.
    """
    try:
        file = new_segment(RING_BYTES)
    except OSError:
        return None
    try:
        ring = RingCaller(file)
        offer(OpenRing(0), (file,))
    except (DriverError, RuntimeError):
        return None
    finally:
        os.close(file)
    return ring
