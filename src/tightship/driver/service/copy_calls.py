"""Calls that copy the contents of buffers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tightship.driver.protocol.messages import CopyBetween, CopyFrom, CopyTo
from tightship.driver.protocol.replies import Done, Reply
from tightship.driver.service.buffer_calls import buffer_of, make_room
from tightship.driver.service.buffers import Buffer
from tightship.driver.service.effects import CopyBuffer, CopyBuffers
from tightship.driver.service.events import CopyFinished
from tightship.driver.service.holds import RefCounted
from tightship.driver.service.ledger import Incoming, Ledger, Waiting, refuse
from tightship.driver.service.owned import Connection, OwnedPool
from tightship.driver.service.pools import check_copy
from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.status import failure, invalid
from tightship.errors import DriverError


def copy_from(ledger: Ledger, incoming: Incoming[CopyFrom]) -> None:
    """Fill a buffer from a pool; any failure leaves the buffer empty."""
    call = incoming.call
    target = buffer_of(incoming.connection, call.token)
    with _emptied_on_failure(target):
        owned = _pool(incoming.connection, call.pool)
        check_copy(owned.pool, to_write=False)
        dimensions = target.check_copy_from(owned.pool.extent.value_bytes, call.dimensions)
        make_room(target, dimensions)
        copy = _begin(ledger, incoming, _Ends(dimensions, None, target), owned.held)
    ledger.emit(CopyBuffer(copy, target.token, owned.pool, dimensions, is_into_buffer=True))


def copy_to(ledger: Ledger, incoming: Incoming[CopyTo]) -> None:
    """Copy a buffer to a pool."""
    source = buffer_of(incoming.connection, incoming.call.token)
    owned = _pool(incoming.connection, incoming.call.pool)
    check_copy(owned.pool, to_write=True)
    source.check_copy_to(owned.pool.extent.value_bytes)
    dimensions = source.dimensions
    copy = _begin(ledger, incoming, _Ends(dimensions, source, None), owned.held)
    ledger.emit(CopyBuffer(copy, source.token, owned.pool, dimensions, is_into_buffer=False))


def copy_between(ledger: Ledger, incoming: Incoming[CopyBetween]) -> Reply | None:
    """Fill a buffer from another one; any failure leaves it empty."""
    call = incoming.call
    if "buffer_copies" not in ledger.settings.features:
        raise failure("This driver copies buffers through pools only.")
    target = buffer_of(incoming.connection, call.token)
    if call.source == call.token:
        return Done()
    with _emptied_on_failure(target):
        source = buffer_of(incoming.connection, call.source)
        dimensions = target.check_copy_of(source)
        make_room(target, dimensions)
        copy = _begin(ledger, incoming, _Ends(dimensions, source, target))
    ledger.emit(CopyBuffers(copy, target.token, source.token, dimensions))
    return None


@contextmanager
def _emptied_on_failure(buffer: Buffer) -> Iterator[None]:
    try:
        yield
    except DriverError:
        buffer.clear()
        raise


def _pool(connection: Connection, number: int) -> OwnedPool:
    owned = connection.pools.get(number)
    if owned is None:
        raise invalid(f"Pool {number} is not registered.")
    return owned


@dataclass(frozen=True, slots=True)
class _Ends:
    """Buffers of a copy.

    Attributes:
        dimensions: Dimensions of the copied value.
        source, target: Buffers; None in place of a pool.
    """

    dimensions: Dimensions
    source: Buffer | None
    target: Buffer | None

    @property
    def buffers(self) -> list[Buffer]:
        """Source and target, without a pool."""
        return [each for each in (self.source, self.target) if each is not None]

    def begin(self) -> None:
        """Register the reader and the writer, or neither.

        Raises:
            DriverError: As from `Buffer.begin`.
        """
        begun: list[Buffer] = []
        try:
            for each in self.buffers:
                each.begin(to_write=each is self.target)
                begun.append(each)
        except DriverError:
            self._end(begun)
            raise

    def end(self) -> None:
        """Remove the reader and the writer."""
        self._end(self.buffers)

    def _end(self, begun: list[Buffer]) -> None:
        for each in begun:
            each.end(to_write=each is self.target)


def _begin(
    ledger: Ledger,
    incoming: Incoming[CopyFrom] | Incoming[CopyTo] | Incoming[CopyBetween],
    ends: _Ends,
    *others: RefCounted,
) -> int:
    """Register a copy that holds its buffers and others; return the number to request it under."""
    account = incoming.connection.account
    copy = ledger.identifiers.take()

    def finish(answer: object, _: Connection | None) -> Reply:
        assert isinstance(answer, CopyFinished)
        ends.end()
        if ends.target is not None and not answer.status:
            ends.target.fill(ends.dimensions)
        elif ends.target is not None:
            ends.target.clear()
        refuse(answer.status, "The bytes cannot be copied.")
        return Done()

    beneath = (*[each.held for each in ends.buffers], *others)
    held = RefCounted(account, beneath=beneath)
    ends.begin()
    try:
        ledger.wait(
            copy,
            Waiting(incoming.connection.identifier, incoming.number, account, held, finish),
        )
    except DriverError:
        ends.end()
        raise
    for each in beneath:
        each.hold()
    return copy
