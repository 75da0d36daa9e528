"""State machine of the driver: an event and the time go in, effects come out.

    server: sockets, clock, engine  --- event, now_ns --->  Service  --- effects --->  server

It uses no object of the operating system, starts no thread and reads no clock. One thread owns it.
After each event it is consistent: whatever is alive has an owner or a user, and every received file
was closed or will be closed with its holder.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import DriverCapabilities, Failed, Reply
from tightship.driver.service import (
    buffer_calls,
    burst_calls,
    call_cache,
    copy_calls,
    execution_calls,
    inspect_calls,
    model_calls,
    pool_calls,
)
from tightship.driver.service.effects import CloseConnection, CloseFile, Effect
from tightship.driver.service.events import (
    BufferAllocated,
    Connected,
    CopyFinished,
    Disconnected,
    Event,
    FenceChanged,
    Malformed,
    Measured,
    PermitGranted,
    PoolMapped,
    PrepareFinished,
    Received,
    RunFinished,
    SupportFound,
    Tick,
)
from tightship.driver.service.ledger import Incoming, Ledger, failed
from tightship.driver.service.owned import Connection
from tightship.driver.service.scheduler import LATE, Scheduler
from tightship.driver.types.attachment import Attachment
from tightship.driver.types.quota import Account, Accounts, Resource
from tightship.driver.types.settings import Settings
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

FEATURE_LEVEL = 1
RECENT_NS = 250_000_000
"""Nanoseconds after a call in which its client may send the next before it makes room."""

_CALLS: Mapping[type, Callable[[Ledger, Incoming[Any]], Reply | None]] = {
    m.RegisterPool: pool_calls.register,
    m.UnregisterPool: pool_calls.unregister,
    m.SupportedOperations: model_calls.supported_operations,
    m.Prepare: model_calls.prepare,
    m.PrepareFromCache: model_calls.prepare_from_cache,
    m.ReleaseModel: model_calls.release_model,
    m.Allocate: buffer_calls.allocate,
    m.Free: buffer_calls.free,
    m.CopyFrom: copy_calls.copy_from,
    m.CopyTo: copy_calls.copy_to,
    m.CopyBetween: copy_calls.copy_between,
    m.DescribeBuffer: buffer_calls.describe,
    m.Inspect: inspect_calls.inspect,
    m.OpenRing: call_cache.open_ring,
}
_RUNS: Mapping[type, Callable[[Ledger, Scheduler, Incoming[Any]], Reply | None]] = {
    m.Execute: execution_calls.execute,
    m.ExecuteFenced: execution_calls.execute_fenced,
    m.GetExecutionInfo: execution_calls.execution_info,
    m.CreateExecution: execution_calls.create_execution,
    m.RunExecution: execution_calls.run_execution,
    m.RunExecutionFenced: execution_calls.run_execution_fenced,
    m.ReleaseExecution: execution_calls.release_execution,
    m.OpenBurst: burst_calls.open_burst,
    m.BurstExecute: burst_calls.burst_execute,
    m.ReleaseSlot: burst_calls.release_slot,
    m.CloseBurst: burst_calls.close_burst,
}


class Service:
    """Clients of a driver.

    Attributes:
        ledger: Everything that is alive; others only read it.
    """

    def __init__(self, settings: Settings, rng: Random, accounts: Accounts | None = None) -> None:
        """Choose the order of identifiers by `rng`; other endpoints charge `accounts` as well."""
        self.ledger = Ledger(settings, rng, accounts or Accounts(settings.user_limits))
        self._scheduler = Scheduler(self.ledger)

    def handle(self, event: Event, now_ns: int) -> list[Effect]:
        """Handle an event and return the effects to carry out, in order.

        Args:
            event: Event to handle.
            now_ns: Time on the clock of deadlines, which never goes back.
        """
        self._take_due(now_ns)
        self._dispatch(event, now_ns)
        effects, self.ledger.effects = self.ledger.effects, []
        return effects

    def next_ns(self) -> int | None:
        """Return the time at which a `Tick` is due, if any."""
        return self.ledger.timers.next_ns()

    def _dispatch(self, event: Event, now_ns: int) -> None:
        match event:
            case Received():
                self._receive(event, now_ns)
            case PermitGranted():
                self._scheduler.permit_granted(event)
            case RunFinished():
                self._scheduler.finished(event)
            case FenceChanged():
                self._fence_changed(event, now_ns)
            case Connected():
                self._connect(event, now_ns)
            case Disconnected():
                self._disconnect(event)
            case Malformed():
                reply = Failed(event.status, event.message)
                self.ledger.send(event.connection, event.number, reply)
                self._close(event.files, set())
            case Tick():
                pass
            case _:
                self.ledger.finish(_question(event), event)

    def file_count(self, connection: int) -> int:
        """Return the number of files kept for a client: pools, and fences that executions await."""
        found = self.ledger.connections.get(connection)
        pools = 0 if found is None else found.account.used[Resource.POOLS]
        executions = self.ledger.executions.values()
        return pools + sum(len(each.fences) for each in executions if each.connection == connection)

    def has_room(self, user: int) -> bool:
        """Whether one more connection of a user is within the limits."""
        return self.ledger.accounts.of(user).room(Resource.CONNECTIONS) > 0

    def idle(self, now_ns: int, user: int | None = None) -> list[int]:
        """Return connections that can make room for another: idle ones that hold nothing.

        Args:
            now_ns: As for `handle`; a connection on which a call came less than `RECENT_NS` before
                is left out, as its client may send the next just then.
            user: User whose connections are wanted; None for all users.

        Returns:
            Numbers, the user with the most connections first, then the one idle longest.
        """
        ledger = self.ledger
        calling = {each.connection for each in ledger.waiting.values()}
        calling.update(each.connection for each in ledger.executions.values())
        counts = Counter(each.caller.user for each in ledger.connections.values())
        found = [
            each
            for each in ledger.connections.values()
            if each.holds_nothing
            and each.heard_ns <= now_ns - RECENT_NS
            and each.identifier not in calling
            and user in {None, each.caller.user}
        ]
        found.sort(key=lambda each: (-counts[each.caller.user], each.heard_ns))
        return [each.identifier for each in found]

    def _take_due(self, now_ns: int) -> None:
        while (number := self.ledger.timers.take_due(now_ns)) is not None:
            execution = self.ledger.executions.get(number)
            if execution is None:
                self.ledger.give_up(number, LATE)
            else:
                self._scheduler.due(execution, now_ns)

    def _connect(self, event: Connected, now_ns: int) -> None:
        ledger, settings, caller = self.ledger, self.ledger.settings, event.caller
        user = ledger.accounts.of(caller.user)
        account = Account(settings.connection_limits, user)
        try:
            account.charge(Resource.CONNECTIONS)
        except DriverError as error:
            ledger.emit(CloseConnection(caller.connection, str(error)))
            return
        ledger.connections[caller.connection] = Connection(caller, account, heard_ns=now_ns)

    def _disconnect(self, event: Disconnected) -> None:
        ledger = self.ledger
        connection = ledger.connections.pop(event.connection, None)
        if connection is None:
            return
        connection.account.refund(Resource.CONNECTIONS)
        call_cache.end_all(ledger, connection)
        ledger.orphan(connection.identifier)
        for execution in list(ledger.executions.values()):
            if execution.connection == connection.identifier:
                self._scheduler.abort(execution)
        connection.release(ledger.emit)
        ledger.accounts.forget_unused()

    def _receive(self, event: Received, now_ns: int) -> None:
        connection = self.ledger.connections.get(event.connection)
        if connection is None:
            self._close(event.files, set())
            return
        connection.heard_ns = now_ns
        call_cache.withdraw(self.ledger, connection, event.call)
        incoming = Incoming(connection, event.number, event.call, event.files, now_ns)
        try:
            reply = self._answer(incoming)
        except DriverError as error:
            reply = failed(error)
        if reply is not None:
            self.ledger.send(event.connection, event.number, reply)
        self._close(event.files, incoming.kept)

    def _answer(self, incoming: Incoming[m.Call]) -> Reply | None:
        kind = type(incoming.call)
        if kind in _RUNS:
            return _RUNS[kind](self.ledger, self._scheduler, incoming)
        if kind in _CALLS:
            return _CALLS[kind](self.ledger, incoming)
        settings = self.ledger.settings
        return DriverCapabilities(
            FEATURE_LEVEL,
            tuple(sorted(settings.features)),
            settings.model_cache_files,
            settings.data_cache_files,
        )

    def _close(self, files: tuple[Attachment, ...], kept: set[int]) -> None:
        for index, file in enumerate(files):
            if index not in kept:
                self.ledger.emit(CloseFile(file.handle))

    def _fence_changed(self, event: FenceChanged, now_ns: int) -> None:
        execution = self.ledger.watchers.pop(event.handle, None)
        if execution is None:
            return
        execution.fences.remove(event.handle)
        self.ledger.emit(CloseFile(event.handle))
        if not event.is_ok:
            reason = "A fence that the execution waited for has failed."
            self._scheduler.end(execution, Failed(ErrorStatus.GENERAL_FAILURE, reason))
        elif not execution.fences:
            self._scheduler.submit(execution, now_ns)


def _question(
    answer: PoolMapped | SupportFound | PrepareFinished | BufferAllocated | CopyFinished | Measured,
) -> int:
    match answer:
        case PoolMapped():
            return answer.pool
        case SupportFound() | Measured():
            return answer.query
        case PrepareFinished():
            return answer.model
        case BufferAllocated():
            return -answer.token
        case CopyFinished():
            return answer.copy
