"""Memory through which calls and their answers go while the driver looks there."""

import os
from collections.abc import Callable, Sequence

from tightship._core import RingCaller
from tightship.driver.memory.descriptor import new_segment
from tightship.driver.protocol.messages import RING_BYTES, OpenRing
from tightship.errors import DriverError


def open_ring(offer: Callable[[OpenRing, Sequence[int]], object]) -> RingCaller | None:
    """A ring that a driver takes; None where there is no memory for it.

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
