"""Calls that run models: synchronous, fenced and reusable executions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tightship.driver.protocol.messages import (
    CreateExecution,
    Execute,
    ExecuteFenced,
    GetExecutionInfo,
    ReleaseExecution,
    RunExecution,
    RunExecutionFenced,
)
from tightship.driver.protocol.replies import Done, ExecutionCreated, Launched, Reply
from tightship.driver.service.binding import bind, buffer_uses, check_asked, model_of, pools_of
from tightship.driver.service.call_cache import pause
from tightship.driver.service.effects import WatchFence
from tightship.driver.service.execution import Execution, Limit, Phase
from tightship.driver.service.holds import RefCounted
from tightship.driver.service.ledger import Incoming, Ledger
from tightship.driver.service.owned import Asked, Bound, OwnedPool, Session
from tightship.driver.service.scheduler import Scheduler
from tightship.driver.types.attachment import FenceState
from tightship.driver.types.quota import Resource
from tightship.driver.types.status import failure, invalid


def execute(ledger: Ledger, scheduler: Scheduler, incoming: Incoming[Execute]) -> None:
    """Check a request and run it; the reply follows the run."""
    call, connection = incoming.call, incoming.connection
    limit = Limit(call.deadline_ns, loop_timeout_ns=call.loop_timeout_ns)
    limit.check()
    asked = Asked(
        model_of(connection, call.model),
        call.request,
        pools_of(connection, call.request),
    )
    checked = check_asked(asked)
    bound = bind(connection, checked, limit.deadline_ns, incoming.now_ns)
    execution = new_execution(ledger, incoming, asked, bound, limit)
    execution.measure_timing = call.measure_timing
    launch(ledger, scheduler, execution, incoming.now_ns)


def new_execution(
    ledger: Ledger,
    incoming: Incoming[Any],
    asked: Asked,
    bound: Bound,
    limit: Limit,
    *,
    is_fenced: bool = False,
) -> Execution:
    """Create an execution that holds the model, pools and buffers it needs.

    Raises:
        DriverError: RESOURCE_EXHAUSTED_TRANSIENT: the client has too many executions.
    """
    connection = incoming.connection
    work = RefCounted(connection.account)
    record = RefCounted(connection.account) if is_fenced else None
    (record or work).charge(Resource.EXECUTIONS)
    pools = [owned.held for owned in asked.pools if owned is not None]
    beneath = (asked.model.held, *pools, *(use.buffer.held for use in bound.uses))
    for held in beneath:
        held.hold()
    work.beneath = beneath
    return Execution(
        ledger.identifiers.take(),
        connection.identifier,
        incoming.number,
        asked.model.identifier,
        asked.model.priority,
        work,
        record,
        bound.inputs,
        bound.outputs,
        bound.uses,
        limit,
        call=None if is_fenced else incoming.call,
    )


def launch(ledger: Ledger, scheduler: Scheduler, execution: Execution, now_ns: int) -> None:
    """Submit an execution to the scheduler, once the fences that it waits for are signalled."""
    ledger.executions[execution.identifier] = execution
    execution.expect()
    pause(ledger, execution)
    if not execution.fences:
        scheduler.submit(execution, now_ns)
        return
    execution.phase = Phase.WAITING
    for handle in sorted(execution.fences):
        ledger.watchers[handle] = execution
        ledger.emit(WatchFence(handle))
    if execution.limit.deadline_ns >= 0:
        ledger.timers.set(execution.identifier, execution.limit.deadline_ns)


def execute_fenced(ledger: Ledger, scheduler: Scheduler, incoming: Incoming[ExecuteFenced]) -> None:
    """Check a request and reply with a fence; the run begins once its own fences are signalled."""
    call, connection = incoming.call, incoming.connection
    limit = Limit(call.deadline_ns, call.duration_ns, call.loop_timeout_ns)
    limit.check()
    asked = Asked(
        model_of(connection, call.model),
        call.request,
        pools_of(connection, call.request),
        is_fenced=True,
    )
    checked = check_asked(asked)
    fences = _pending(incoming)
    bound = bind(connection, checked, limit.deadline_ns, incoming.now_ns)
    execution = new_execution(ledger, incoming, asked, bound, limit, is_fenced=True)
    execution.measure_timing = call.measure_timing
    _launch_fenced(ledger, scheduler, incoming, execution, fences)


def _pending(incoming: Incoming[ExecuteFenced] | Incoming[RunExecutionFenced]) -> set[int]:
    """Return the indexes of fences that are not signalled yet.

    Raises:
        DriverError: INVALID_ARGUMENT: a file is not a fence, or the fence has failed.
    """
    pending = set()
    for index in incoming.call.wait_for:
        state = incoming.file(index).fence
        if state is None or state is FenceState.ERROR:
            raise invalid(f"File {index} is not a fence, or it is a fence that has failed.")
        if state is FenceState.PENDING:
            pending.add(index)
    return pending


def _launch_fenced(
    ledger: Ledger,
    scheduler: Scheduler,
    incoming: Incoming[ExecuteFenced] | Incoming[RunExecutionFenced],
    execution: Execution,
    fences: set[int],
) -> None:
    incoming.kept.update(fences)
    execution.number = None
    execution.fences = {incoming.files[index].handle for index in fences}
    incoming.connection.fenced[execution.identifier] = execution
    # Sending the reply creates the fence, so nothing may signal it before.
    ledger.send(incoming.connection.identifier, incoming.number, Launched(execution.identifier))
    launch(ledger, scheduler, execution, incoming.now_ns)


def create_execution(ledger: Ledger, _: Scheduler, incoming: Incoming[CreateExecution]) -> Reply:
    """Check a request once, for repeated runs."""
    call, connection = incoming.call, incoming.connection
    limit = Limit(loop_timeout_ns=call.loop_timeout_ns)
    limit.check()
    model = model_of(connection, call.model)
    pools = tuple(pools_of(connection, call.request))
    asked = Asked(model, call.request, pools)
    checked = check_asked(asked)
    buffer_uses(connection, checked)
    held = RefCounted(connection.account)
    held.charge(Resource.EXECUTIONS)
    held.beneath = (model.held.hold(), *_hold_all(pools))
    session = Session(
        ledger.identifiers.take(),
        model,
        held,
        checked,
        call.measure_timing,
        limit.loop_timeout_ns,
    )
    connection.reusables[session.identifier] = session
    return ExecutionCreated(session.identifier)


def _hold_all(pools: Sequence[OwnedPool | None]) -> list[RefCounted]:
    return [owned.held.hold() for owned in pools if owned is not None]


def run_execution(ledger: Ledger, scheduler: Scheduler, incoming: Incoming[RunExecution]) -> None:
    """Run a reusable execution."""
    execution = _of_session(ledger, incoming, Limit(incoming.call.deadline_ns))
    launch(ledger, scheduler, execution, incoming.now_ns)


def run_execution_fenced(
    ledger: Ledger, scheduler: Scheduler, incoming: Incoming[RunExecutionFenced]
) -> None:
    """Run a reusable execution behind fences."""
    call = incoming.call
    fences = _pending(incoming)
    execution = _of_session(ledger, incoming, Limit(call.deadline_ns, call.duration_ns))
    _launch_fenced(ledger, scheduler, incoming, execution, fences)


def _of_session(
    ledger: Ledger,
    incoming: Incoming[RunExecution] | Incoming[RunExecutionFenced],
    limit: Limit,
) -> Execution:
    """Create a run of a reusable execution, unless one is under way."""
    connection = incoming.connection
    session = connection.reusables.get(incoming.call.execution)
    if session is None:
        raise invalid(f"Reusable execution {incoming.call.execution} was not created.")
    checked = session.checked
    assert checked is not None
    limit.loop_timeout_ns = session.loop_timeout_ns
    limit.check()
    asked = checked.asked
    is_fenced = isinstance(incoming.call, RunExecutionFenced)
    if is_fenced:
        check_asked(replace(asked, is_fenced=True))
    if session.running:
        raise failure("The execution is under way; it runs once at a time.")
    bound = bind(connection, checked, limit.deadline_ns, incoming.now_ns)
    execution = new_execution(ledger, incoming, asked, bound, limit, is_fenced=is_fenced)
    execution.measure_timing = session.measure_timing
    execution.session = session.identifier
    session.running = execution.identifier
    return execution


def execution_info(_: Ledger, __: Scheduler, incoming: Incoming[GetExecutionInfo]) -> Reply:
    """Return the result of a fenced execution."""
    execution = incoming.connection.fenced.get(incoming.call.execution)
    if execution is None:
        raise invalid(f"Fenced execution {incoming.call.execution} was not launched.")
    if execution.info is None:
        raise failure("The execution has not ended; wait for its fence.")
    return execution.info


def release_execution(ledger: Ledger, _: Scheduler, incoming: Incoming[ReleaseExecution]) -> Reply:
    """Release a fenced or reusable execution; a run under way completes."""
    connection, number = incoming.connection, incoming.call.execution
    execution = connection.fenced.pop(number, None)
    session = connection.reusables.pop(number, None)
    if execution is not None:
        execution.release(ledger.emit)
    elif session is not None:
        for held in session.holdings():
            ledger.release(held)
    else:
        raise invalid(f"Execution {number} was neither launched nor created.")
    return Done()
