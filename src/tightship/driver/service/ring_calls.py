"""Call that offers memory through which repeated calls may come."""

from tightship.driver.protocol.messages import RING_BYTES, OpenRing
from tightship.driver.protocol.replies import Done, Reply
from tightship.driver.service.effects import AttendRing
from tightship.driver.service.ledger import Incoming, Ledger
from tightship.driver.types.status import invalid


def open_ring(ledger: Ledger, incoming: Incoming[OpenRing]) -> Reply:
    """Check the file of a ring and use it; a connection may have one."""
    connection, file = incoming.connection, incoming.file(incoming.call.file)
    if "call_ring" not in ledger.settings.features:
        raise invalid("This driver has no `call_ring`; send calls by the socket.")
    if connection.has_ring:
        raise invalid("The connection has a ring already.")
    if not (file.is_regular and file.is_readable and file.is_writable):
        raise invalid("The file of a ring must be a memfd open to read and write.")
    if not file.is_shrink_sealed or file.is_write_sealed:
        raise invalid("A ring must be sealed against shrinking, and not against writing.")
    if file.size_bytes != RING_BYTES:
        raise invalid(f"A ring must have {RING_BYTES} bytes, not {file.size_bytes}.")
    connection.has_ring = True
    ledger.emit(AttendRing(connection.identifier, file.handle))
    return Done()
