"""Call that requests a snapshot of all holdings."""

from collections.abc import Container, Iterable

from tightship.driver.protocol.messages import Inspect
from tightship.driver.protocol.replies import Inspected, Reply
from tightship.driver.service.effects import Measure
from tightship.driver.service.events import Measured
from tightship.driver.service.holds import RefCounted
from tightship.driver.service.ledger import Incoming, Ledger, Waiting, refuse
from tightship.driver.service.owned import Connection
from tightship.driver.types.pools import Pool
from tightship.driver.types.snapshot import (
    DRIVER,
    BufferShare,
    Caller,
    Holdings,
    ModelShare,
    PoolShare,
    Snapshot,
)
from tightship.driver.types.status import invalid


def inspect(ledger: Ledger, incoming: Incoming[Inspect]) -> None:
    """Have the server complete a snapshot and write it to the client's file."""
    connection, settings = incoming.connection, ledger.settings
    file = incoming.file(incoming.call.file)
    if connection.caller.user not in settings.operators:
        raise invalid("Only the driver's own user and root may request a snapshot.")
    if not (file.is_regular and file.is_writable):
        raise invalid("The file for a snapshot must be a regular file or memfd open to write.")
    query = ledger.identifiers.take()

    def finish(answer: object, _: Connection | None) -> Reply:
        assert isinstance(answer, Measured)
        refuse(answer.status, "The snapshot cannot be written to the file.")
        return Inspected(answer.size_bytes)

    account, held = connection.account, RefCounted(connection.account)
    waiting = Waiting(
        connection.caller.connection, incoming.number, account, held, finish, (file.handle,)
    )
    ledger.wait(query, waiting)
    incoming.kept.add(incoming.call.file)
    ledger.emit(Measure(query, snapshot_of(ledger), file.handle))


def snapshot_of(ledger: Ledger) -> Snapshot:
    """Return the holdings known to the service: sizes, but no resident pages or weights."""
    pools: dict[Caller, list[Pool]] = {}
    for live in ledger.pools.values():
        pools.setdefault(live.caller, []).append(live.pool)
    found = []
    for connection in ledger.connections.values():
        shares = _shares(pools.pop(connection.caller, []), connection.pools)
        buffers = tuple(
            BufferShare(buffer.token, buffer.size_bytes, buffer.is_initialised)
            for buffer in connection.buffers.values()
        )
        models = tuple(map(ModelShare, connection.models))
        found.append(Holdings(connection.caller, pools=shares, buffers=buffers, models=models))
    found += [
        Holdings(caller, is_connected=False, pools=_shares(rest, ()))
        for caller, rest in pools.items()
    ]
    return Snapshot(Holdings(DRIVER), tuple(found))


def _shares(pools: Iterable[Pool], registered: Container[int]) -> tuple[PoolShare, ...]:
    return tuple(
        PoolShare(
            pool.identifier,
            pool.kind,
            pool.mode.name.lower(),
            pool.extent.size_bytes,
            pool.identifier in registered,
        )
        for pool in pools
    )
