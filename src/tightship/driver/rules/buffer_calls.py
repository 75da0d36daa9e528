"""Calls about buffers."""

from tightship.driver.effects import AllocateBuffer, CopyBuffer, DropBuffer
from tightship.driver.events import BufferAllocated, CopyFinished
from tightship.driver.protocol.messages import Allocate, CopyFrom, CopyTo, Free
from tightship.driver.protocol.replies import Allocated, Done, Reply
from tightship.driver.rules.buffers import Buffer, check_allocation
from tightship.driver.rules.dimensions import Dimensions
from tightship.driver.rules.holds import Held
from tightship.driver.rules.ledger import Incoming, Ledger, Waiting, refuse
from tightship.driver.rules.operand_type import size_bytes
from tightship.driver.rules.owned import Connection, OwnedPool
from tightship.driver.rules.pools import check_copy
from tightship.driver.rules.quota import Resource
from tightship.driver.rules.status import failure, invalid
from tightship.errors import DriverError


def allocate(ledger: Ledger, incoming: Incoming[Allocate]) -> None:
    """Check what a buffer is for and have it allocated."""
    connection = incoming.connection
    if "memory_domains" not in ledger.settings.features:
        raise failure("This driver has no buffers of its own; use pools.")
    interfaces = {number: model.interface for number, model in connection.models.items()}
    value_type, roles = check_allocation(incoming.call, interfaces)
    held = Held(connection.account)
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

        # Tokens and other numbers may coincide; negative ones are of allocations.
        ledger.wait(
            -token,
            Waiting(connection.identifier, incoming.number, connection.account, held, finish),
        )
    except DriverError:
        ledger.let_go(held)
        raise
    held.ending = DropBuffer(token)
    ledger.emit(AllocateBuffer(token, value_type, tuple(sorted(roles))))


def free(ledger: Ledger, incoming: Incoming[Free]) -> Reply:
    """Forget a buffer; it is dropped once no execution uses it."""
    buffer = incoming.connection.buffers.pop(incoming.call.token, None)
    if buffer is None:
        raise invalid(f"There is no buffer {incoming.call.token}.")
    ledger.let_go(buffer.held)
    return Done()


def copy_from(ledger: Ledger, incoming: Incoming[CopyFrom]) -> None:
    """Fill a buffer from a pool; if that fails in any way, the buffer holds nothing."""
    call = incoming.call
    buffer = _buffer(incoming.connection, call.token)
    try:
        owned = _pool(incoming.connection, call.pool)
        check_copy(owned.pool, to_write=False)
        dimensions = buffer.check_copy_from(owned.pool.extent.value_bytes, call.dimensions)
        make_room(buffer, dimensions)
        _begin(ledger, incoming, buffer, owned, dimensions)
    except DriverError:
        buffer.clear()
        raise


def copy_to(ledger: Ledger, incoming: Incoming[CopyTo]) -> None:
    """Write a buffer to a pool."""
    buffer = _buffer(incoming.connection, incoming.call.token)
    owned = _pool(incoming.connection, incoming.call.pool)
    check_copy(owned.pool, to_write=True)
    buffer.check_copy_to(owned.pool.extent.value_bytes)
    _begin(ledger, incoming, buffer, owned, buffer.dimensions)


def _buffer(connection: Connection, token: int) -> Buffer:
    buffer = connection.buffers.get(token)
    if buffer is None:
        raise invalid(f"There is no buffer {token}.")
    return buffer


def _pool(connection: Connection, number: int) -> OwnedPool:
    owned = connection.pools.get(number)
    if owned is None:
        raise invalid(f"Pool {number} is not registered.")
    return owned


def make_room(buffer: Buffer, dimensions: Dimensions) -> None:
    """Charge what a buffer grows by to hold a value of these dimensions.

    Raises:
        DriverError: RESOURCE_EXHAUSTED_TRANSIENT or RESOURCE_EXHAUSTED_PERSISTENT.
    """
    needed = size_bytes(buffer.value_type.operand_type, dimensions)
    growth = needed - buffer.held.charges[Resource.BUFFER_BYTES]
    if growth > 0:
        buffer.held.charge(Resource.BUFFER_BYTES, growth)


def _begin(
    ledger: Ledger,
    incoming: Incoming[CopyFrom] | Incoming[CopyTo],
    buffer: Buffer,
    owned: OwnedPool,
    dimensions: Dimensions,
) -> None:
    connection, is_into_buffer = incoming.connection, isinstance(incoming.call, CopyFrom)
    copy = ledger.identifiers.take()

    def finish(answer: object, _: Connection | None) -> Reply:
        assert isinstance(answer, CopyFinished)
        buffer.end(to_write=is_into_buffer)
        if is_into_buffer and not answer.status:
            buffer.fill(dimensions)
        elif is_into_buffer:
            buffer.clear()
        refuse(answer.status, "The bytes cannot be copied.")
        return Done()

    held = Held(connection.account, beneath=(buffer.held, owned.held))
    waiting = Waiting(connection.identifier, incoming.number, connection.account, held, finish)
    buffer.begin(to_write=is_into_buffer)
    try:
        ledger.wait(copy, waiting)
    except DriverError:
        buffer.end(to_write=is_into_buffer)
        raise
    buffer.held.hold()
    owned.held.hold()
    ledger.emit(CopyBuffer(copy, buffer.token, owned.pool, dimensions, is_into_buffer))
