"""Refuses what would grow the driver while too little memory is left for it to go on.

Python itself may end a process that has no byte left. So new clients, and calls that keep
something, are refused while less than `LEAST_BYTES` could be had; calls that run models or release
something are answered.
"""

import socket
from contextlib import suppress

from tightship.driver.memory.reserve import LEAST_BYTES, has_least
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.codec import encode_reply
from tightship.driver.protocol.replies import Failed
from tightship.driver.server.accepting import Shortage
from tightship.driver.service.events import Event, Malformed, Received
from tightship.driver.types.status import ErrorStatus

GROWING = (
    m.RegisterPool,
    m.SupportedOperations,
    m.Prepare,
    m.PrepareFromCache,
    m.Allocate,
    m.CreateExecution,
    m.OpenBurst,
    m.OpenRing,
    m.Inspect,
)
"""Calls that keep something, or need more memory than a reply."""
NO_MEMORY = (
    f"The driver has less than {LEAST_BYTES} bytes of memory left, which it needs to go on. "
    "Release something, or raise its limits."
)
_FAREWELL = Failed(ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT, NO_MEMORY)


class Scarcity:
    """Refusals for want of memory, of which the log has the first and the count."""

    def __init__(self) -> None:
        self._farewell = encode_reply(_FAREWELL, 0)
        self._shortage = Shortage("Too little memory is left", "clients and calls are refused")

    def admits(self, client: socket.socket) -> bool:
        """Whether a new client may stay; one that may not is told why, and disconnected."""
        if has_least():
            self._shortage.end_if_calm()
            return True
        self._shortage.refused()
        with client, suppress(OSError):
            client.send(self._farewell, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        return False

    def admitted(self, event: Event) -> Event:
        """Return the event of a call, or of its refusal if the call would grow the driver."""
        if not isinstance(event, Received) or not isinstance(event.call, GROWING) or has_least():
            return event
        self._shortage.refused()
        short = ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT
        return Malformed(event.connection, event.number, NO_MEMORY, event.files, status=short)

    def end(self) -> None:
        """Log the count, if there is one."""
        self._shortage.end()
