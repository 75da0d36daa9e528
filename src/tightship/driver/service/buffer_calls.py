"""Calls that allocate, describe and release buffers."""

from tightship.driver.protocol.messages import Allocate, DescribeBuffer, Free
from tightship.driver.protocol.replies import Allocated, BufferDescribed, Done, Reply
from tightship.driver.service.buffers import Buffer, check_allocation
from tightship.driver.service.effects import AllocateBuffer, DropBuffer
from tightship.driver.service.events import BufferAllocated
from tightship.driver.service.holds import RefCounted
from tightship.driver.service.ledger import Incoming, Ledger, Waiting, refuse
from tightship.driver.service.owned import Connection
from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.operand_type import size_bytes
from tightship.driver.types.quota import Resource
from tightship.driver.types.status import failure, invalid
from tightship.errors import DriverError


def allocate(ledger: Ledger, incoming: Incoming[Allocate]) -> None:
    """Check the roles of a buffer and request its allocation."""
    connection = incoming.connection
    if "memory_domains" not in ledger.settings.features:
        raise failure("This driver has no buffers of its own; use pools.")
    interfaces = {number: model.interface for number, model in connection.models.items()}
    value_type, roles = check_allocation(incoming.call, interfaces)
    held = RefCounted(connection.account)
    try:
        held.charge(Resource.BUFFERS)
        held.charge(Resource.BUFFER_BYTES, value_type.size_bytes)
        token = ledger.tokens.take()
        buffer = Buffer(token, value_type, roles, held)

        def finish(answer: object, client: Connection | None) -> Reply | None:
            assert isinstance(answer, BufferAllocated)
            refuse(answer.status, "The buffer cannot be allocated.")
            if client is None:
                return None
            held.hold()
            client.buffers[token] = buffer
            return Allocated(token)

        # Tokens may equal other identifiers, so allocations wait under negative numbers.
        ledger.wait(
            -token,
            Waiting(connection.identifier, incoming.number, connection.account, held, finish),
        )
    except DriverError:
        ledger.release(held)
        raise
    held.ending = DropBuffer(token)
    ledger.emit(AllocateBuffer(token, value_type, tuple(sorted(roles))))


def describe(_: Ledger, incoming: Incoming[DescribeBuffer]) -> Reply:
    """Return the dimensions of a buffer's contents."""
    buffer = buffer_of(incoming.connection, incoming.call.token)
    buffer.check_filled()
    return BufferDescribed(buffer.dimensions)


def free(ledger: Ledger, incoming: Incoming[Free]) -> Reply:
    """Release a buffer; it is dropped once no execution uses it."""
    buffer = incoming.connection.buffers.pop(incoming.call.token, None)
    if buffer is None:
        raise invalid(f"Buffer {incoming.call.token} is not allocated.")
    ledger.release(buffer.held)
    return Done()


def buffer_of(connection: Connection, token: int) -> Buffer:
    """Return a buffer of a client.

    Raises:
        DriverError: INVALID_ARGUMENT: the client has no buffer with this token.
    """
    buffer = connection.buffers.get(token)
    if buffer is None:
        raise invalid(f"Buffer {token} is not allocated.")
    return buffer


def make_room(buffer: Buffer, dimensions: Dimensions) -> None:
    """Charge the growth of a buffer that is to hold a value of these dimensions.

    Raises:
        DriverError: RESOURCE_EXHAUSTED_TRANSIENT or RESOURCE_EXHAUSTED_PERSISTENT.
    """
    needed = size_bytes(buffer.value_type.operand_type, dimensions)
    growth = needed - buffer.held.charges[Resource.BUFFER_BYTES]
    if growth > 0:
        buffer.held.charge(Resource.BUFFER_BYTES, growth)
