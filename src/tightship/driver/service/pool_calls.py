"""Calls that register and release pools."""

from tightship.driver.protocol.messages import RegisterPool, UnregisterPool
from tightship.driver.protocol.replies import Done, PoolRegistered, Reply
from tightship.driver.service.effects import DropPool, MapPool
from tightship.driver.service.events import PoolMapped
from tightship.driver.service.holds import RefCounted
from tightship.driver.service.ledger import Incoming, Ledger, LivePool, Waiting
from tightship.driver.service.owned import Connection, OwnedPool
from tightship.driver.service.pools import check_mapping, check_pool
from tightship.driver.types.quota import Resource
from tightship.driver.types.status import invalid
from tightship.errors import DriverError


def register(ledger: Ledger, incoming: Incoming[RegisterPool]) -> Reply | None:
    """Register a pool; it is mapped first if the client asks for that."""
    call, connection = incoming.call, incoming.connection
    file = incoming.file(call.file)
    pool = check_pool(call, file, ledger.identifiers.take(), ledger.settings.features)
    if call.must_map:
        check_mapping(pool)
    held = RefCounted(connection.account)
    try:
        held.charge(Resource.POOLS)
        held.charge(Resource.POOL_BYTES, call.size_bytes)
        owned = OwnedPool(pool, held)
        if call.must_map:
            ledger.wait(pool.identifier, _mapping(owned, incoming))
    except DriverError:
        held.release(ledger.emit)
        raise
    held.ending = DropPool(pool)
    ledger.pools[pool.identifier] = LivePool(pool, connection.caller)
    incoming.kept.add(call.file)
    if call.must_map:
        ledger.emit(MapPool(pool))
        return None
    connection.pools[pool.identifier] = owned
    return PoolRegistered(pool.identifier)


def _mapping(owned: OwnedPool, incoming: Incoming[RegisterPool]) -> Waiting:
    def finish(answer: object, connection: Connection | None) -> Reply | None:
        assert isinstance(answer, PoolMapped)
        if not answer.is_mapped:
            raise invalid("The pool cannot be mapped.")
        if connection is None:
            return None
        owned.held.hold()
        connection.pools[owned.pool.identifier] = owned
        return PoolRegistered(owned.pool.identifier)

    connection = incoming.connection
    return Waiting(connection.identifier, incoming.number, connection.account, owned.held, finish)


def unregister(ledger: Ledger, incoming: Incoming[UnregisterPool]) -> Reply:
    """Release a pool; it is dropped once nothing uses it."""
    owned = incoming.connection.pools.pop(incoming.call.pool, None)
    if owned is None:
        raise invalid(f"Pool {incoming.call.pool} is not registered.")
    ledger.release(owned.held)
    return Done()
