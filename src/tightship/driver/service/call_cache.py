"""Calls that the server may repeat without the service, until something changes.

A run on registered pools alone neither reads nor changes state of the service. A run on buffers,
repeated, finds in them values of the dimensions that it leaves there. So the server may run and
answer the same bytes on the same connection again without asking.

Repeats are suspended while another execution of a session, or one with a buffer, is under way. If
it changes the state or the dimensions of a buffer, repeats that use the buffer end.
"""

from tightship.driver.protocol.messages import (
    RING_BYTES,
    BurstExecute,
    Call,
    Execute,
    OpenRing,
    RunExecution,
)
from tightship.driver.protocol.replies import Done, Executed, Failed, Reply
from tightship.driver.service.effects import (
    AttendRing,
    CacheCall,
    ForgetCalls,
    PauseCalls,
    ResumeCalls,
    Run,
)
from tightship.driver.service.events import RunFinished
from tightship.driver.service.execution import Execution
from tightship.driver.service.ledger import Incoming, Ledger
from tightship.driver.service.owned import Connection
from tightship.driver.types.request import Request
from tightship.driver.types.status import NO_TIME, ErrorStatus, invalid


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


def offer(
    ledger: Ledger, execution: Execution, answer: RunFinished, reply: Executed | Failed
) -> None:
    """Allow the server to repeat an execution that has ended, if it is short and repeatable."""
    connection = ledger.connections.get(execution.connection)
    call = execution.call
    if (
        connection is None
        or call is None
        or not isinstance(reply, Executed)
        or reply.status is not ErrorStatus.NONE
        or execution.measure_timing
        or execution.limit.deadline_ns != NO_TIME
        or not 0 <= answer.timing.in_driver_ns <= ledger.settings.repeat_max_ns
        or not _is_accepted(connection, execution, call)
        or not _are_filled(connection, execution)
    ):
        return
    session = execution.session or execution.model
    buffers = connection.repeats.setdefault(session, {})
    buffers.update((use.buffer, use.buffer.version) for use in execution.uses)
    ledger.emit(CacheCall(connection.identifier, session, call, run_of(execution), reply))


def run_of(execution: Execution) -> Run:
    """Return the effect that runs an execution."""
    return Run(
        execution.identifier,
        execution.model,
        execution.inputs,
        execution.outputs,
        execution.limit.deadline_ns,
        execution.limit.loop_timeout_ns,
    )


def _is_accepted(connection: Connection, execution: Execution, call: Call) -> bool:
    """Whether everything that the call names is still there."""
    match call:
        case Execute():
            return execution.model in connection.models and _has_pools(connection, call.request)
        case BurstExecute():
            return call.burst in connection.bursts and _has_pools(connection, call.request)
        case RunExecution():
            return call.execution in connection.reusables
    return False


def _has_pools(connection: Connection, request: Request) -> bool:
    return all(pool.is_token or pool.identifier in connection.pools for pool in request.pools)


def _are_filled(connection: Connection, execution: Execution) -> bool:
    """Whether the buffers of a successful execution are still there and filled."""
    return all(
        use.buffer.is_initialised and connection.buffers.get(use.buffer.token) is use.buffer
        for use in execution.uses
    )


def withdraw(ledger: Ledger, connection: Connection, call: Call) -> None:
    """End the repeats that a received call could affect.

    Effects of executions are checked at their end (`resume`).
    """
    match call:
        case Execute() | BurstExecute() | RunExecution():
            pass
        case _:
            end_all(ledger, connection)


def pause(ledger: Ledger, execution: Execution) -> None:
    """Suspend repeats during an execution that they could disturb."""
    connection = ledger.connections[execution.connection]
    if not (execution.session or execution.uses):
        return
    if not connection.pausing:
        ledger.emit(PauseCalls(connection.identifier))
    connection.pausing.add(execution.identifier)


def resume(ledger: Ledger, execution: Execution) -> None:
    """Resume repeats after an execution, except those whose buffers it has changed."""
    connection = ledger.connections.get(execution.connection)
    if connection is None or execution.identifier not in connection.pausing:
        return
    connection.pausing.remove(execution.identifier)
    for session, buffers in list(connection.repeats.items()):
        if any(buffer.version != version for buffer, version in buffers.items()):
            del connection.repeats[session]
            ledger.emit(ForgetCalls(connection.identifier, session))
    if not connection.pausing:
        ledger.emit(ResumeCalls(connection.identifier))


def end_all(ledger: Ledger, connection: Connection) -> None:
    """End all repeats of a client."""
    if connection.repeats:
        connection.repeats.clear()
        ledger.emit(ForgetCalls(connection.identifier, 0))
