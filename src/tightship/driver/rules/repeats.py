"""Calls whose answer is known when they come again, until something changes.

A run on registered pools alone reads no state of the service and leaves none behind. The rim may
do it again, and answer again, without asking: the same bytes on the same connection.
"""

from tightship.driver.effects import EndRepeats, MayRepeat, Run
from tightship.driver.events import RunFinished
from tightship.driver.protocol.messages import BurstExecute, Call, Execute, RunExecution
from tightship.driver.protocol.replies import Executed, Failed
from tightship.driver.rules.execution import Execution
from tightship.driver.rules.ledger import Ledger
from tightship.driver.rules.owned import Connection
from tightship.driver.rules.request import Request
from tightship.driver.rules.status import NO_TIME, ErrorStatus


def offer(
    ledger: Ledger, execution: Execution, answer: RunFinished, reply: Executed | Failed
) -> None:
    """Let the rim repeat an execution that has ended, if it is short and may be repeated."""
    connection = ledger.connections.get(execution.connection)
    call = execution.call
    if (
        connection is None
        or call is None
        or not isinstance(reply, Executed)
        or reply.status is not ErrorStatus.NONE
        or execution.uses
        or execution.measure_timing
        or execution.limit.deadline_ns != NO_TIME
        or not 0 <= answer.timing.in_driver_ns <= ledger.settings.repeat_max_ns
        or not _is_accepted(connection, execution, call)
    ):
        return
    session = execution.session or execution.model
    connection.repeats.add(session)
    ledger.emit(MayRepeat(connection.identifier, session, call, run_of(execution), reply))


def run_of(execution: Execution) -> Run:
    """What the rim is asked to do for an execution."""
    return Run(
        execution.identifier,
        execution.model,
        execution.inputs,
        execution.outputs,
        execution.limit.deadline_ns,
        execution.limit.loop_timeout_ns,
    )


def _is_accepted(connection: Connection, execution: Execution, call: Call) -> bool:
    """Whether what the call names is still there."""
    match call:
        case Execute():
            return execution.model in connection.models and _has_pools(connection, call.request)
        case BurstExecute():
            return call.burst in connection.bursts and _has_pools(connection, call.request)
        case RunExecution():
            return call.execution in connection.reusables
    return False


def _has_pools(connection: Connection, request: Request) -> bool:
    return all(pool.identifier in connection.pools for pool in request.pools)


def withdraw(ledger: Ledger, connection: Connection, call: Call) -> None:
    """A call has come that the service answers: what it may change is not repeated any more.

    Executions change nothing but that a burst or a reusable execution is under way.
    """
    if not connection.repeats:
        return
    match call:
        case Execute():
            return
        case BurstExecute():
            session = call.burst
        case RunExecution():
            session = call.execution
        case _:
            end_all(ledger, connection)
            return
    if session in connection.repeats:
        connection.repeats.remove(session)
        ledger.emit(EndRepeats(connection.identifier, session))


def end_all(ledger: Ledger, connection: Connection) -> None:
    """Nothing of a client is repeated any more."""
    if connection.repeats:
        connection.repeats.clear()
        ledger.emit(EndRepeats(connection.identifier, 0))
