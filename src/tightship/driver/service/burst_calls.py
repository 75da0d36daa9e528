"""Calls of a burst: executions of one model, one at a time, that keep their pools mapped."""

from tightship.driver.protocol.messages import (
    NO_SLOT,
    BurstExecute,
    CloseBurst,
    OpenBurst,
    ReleaseSlot,
)
from tightship.driver.protocol.replies import BurstOpened, Done, Reply
from tightship.driver.service.binding import bind, check_asked, model_of
from tightship.driver.service.execution import Limit
from tightship.driver.service.execution_calls import launch, new_execution
from tightship.driver.service.holds import RefCounted
from tightship.driver.service.ledger import Incoming, Ledger
from tightship.driver.service.owned import Asked, Connection, OwnedPool, Session
from tightship.driver.service.scheduler import Scheduler
from tightship.driver.types.quota import Resource
from tightship.driver.types.status import failure, invalid


def open_burst(ledger: Ledger, _: Scheduler, incoming: Incoming[OpenBurst]) -> Reply:
    """Open a burst."""
    connection = incoming.connection
    model = model_of(connection, incoming.call.model)
    held = RefCounted(connection.account)
    held.charge(Resource.BURSTS)
    held.beneath = (model.held.hold(),)
    burst = Session(ledger.identifiers.take(), model, held)
    connection.bursts[burst.identifier] = burst
    return BurstOpened(burst.identifier)


def burst_execute(ledger: Ledger, scheduler: Scheduler, incoming: Incoming[BurstExecute]) -> None:
    """Check a request and run it; new slots keep their pools from then on."""
    call, connection = incoming.call, incoming.connection
    burst = _burst(connection, call.burst)
    limit = Limit(call.deadline_ns, loop_timeout_ns=call.loop_timeout_ns)
    limit.check()
    asked = Asked(burst.model, call.request, _pools(connection, burst, call))
    checked = check_asked(asked)
    if burst.running:
        raise failure("An execution of the burst is under way; it runs one at a time.")
    bound = bind(connection, checked, limit.deadline_ns, incoming.now_ns)
    execution = new_execution(ledger, incoming, asked, bound, limit)
    execution.measure_timing = call.measure_timing
    execution.session = burst.identifier
    burst.running = execution.identifier
    for slot, owned in zip(call.slots, asked.pools, strict=True):
        if owned is not None and slot != NO_SLOT and slot not in burst.slots:
            owned.held.hold()
            burst.slots[slot] = owned
    launch(ledger, scheduler, execution, incoming.now_ns)


def _burst(connection: Connection, number: int) -> Session:
    burst = connection.bursts.get(number)
    if burst is None:
        raise invalid(f"Burst {number} is not open.")
    return burst


def _pools(connection: Connection, burst: Session, call: BurstExecute) -> list[OwnedPool | None]:
    """Return the pools of a request, from slots or registered.

    Raises:
        DriverError: INVALID_ARGUMENT: a pool is unknown, or its slot refers to other memory.
    """
    if len(call.slots) != len(call.request.pools):
        raise invalid(
            f"The request has {len(call.request.pools)} pools and {len(call.slots)} slots."
        )
    found: list[OwnedPool | None] = []
    seen: dict[int, OwnedPool] = {}
    for slot, pool in zip(call.slots, call.request.pools, strict=True):
        if slot < NO_SLOT:
            raise invalid(f"A slot is {slot}; it must be at least -1.")
        if pool.is_token:
            found.append(None)
            continue
        kept = None if slot == NO_SLOT else burst.slots.get(slot, seen.get(slot))
        owned = connection.pools.get(pool.identifier)
        if kept is not None and kept.pool.identifier == pool.identifier:
            owned = kept
        if owned is None:
            raise invalid(f"Pool {pool.identifier} is not registered.")
        if kept is not None and kept.pool.extent != owned.pool.extent:
            raise invalid(f"Slot {slot} refers to other memory; release it first.")
        found.append(kept or owned)
        seen[slot] = found[-1] or owned
    return found


def release_slot(ledger: Ledger, _: Scheduler, incoming: Incoming[ReleaseSlot]) -> Reply:
    """Release a slot and its pool."""
    burst = _burst(incoming.connection, incoming.call.burst)
    owned = burst.slots.pop(incoming.call.slot, None)
    if owned is None:
        raise invalid(f"The burst has no slot {incoming.call.slot}.")
    ledger.release(owned.held)
    return Done()


def close_burst(ledger: Ledger, _: Scheduler, incoming: Incoming[CloseBurst]) -> Reply:
    """Close a burst; an execution under way completes."""
    burst = _burst(incoming.connection, incoming.call.burst)
    del incoming.connection.bursts[burst.identifier]
    for held in burst.holdings():
        ledger.release(held)
    return Done()
