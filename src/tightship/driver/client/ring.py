"""Memory through which calls of a burst and their answers go while the driver looks there."""

import os

from tightship._core import RingCaller
from tightship.driver.client.session import Session
from tightship.driver.memory.descriptor import new_segment
from tightship.driver.protocol.messages import RING_BYTES, OpenRing
from tightship.driver.protocol.replies import Done
from tightship.errors import DriverError


def open_ring(session: Session, burst: int) -> RingCaller | None:
    """A ring for a burst; None where the driver has none, or there is no memory for it."""
    if "burst_ring" not in session.features():
        return None
    try:
        file = new_segment(RING_BYTES)
    except OSError:
        return None
    try:
        session.expect(Done, OpenRing(burst, 0), (file,))
        return RingCaller(file)
    except (DriverError, RuntimeError):
        return None
    finally:
        os.close(file)
