"""Start and end of executions."""

from tightship.driver.protocol.replies import UNTIMED, Executed, ExecutionInfo, Failed, OutputShape
from tightship.driver.service.buffer_calls import make_room
from tightship.driver.service.call_cache import offer, resume, run_of
from tightship.driver.service.effects import (
    AwaitPermit,
    CancelPermit,
    CloseFile,
    SignalFence,
    StopRun,
)
from tightship.driver.service.events import PermitGranted, RunFinished
from tightship.driver.service.execution import Execution, Phase
from tightship.driver.service.ledger import Ledger, failed
from tightship.driver.types.dimensions import combine
from tightship.driver.types.status import NO_TIME, ErrorStatus, failure
from tightship.errors import DriverError

LATE = Failed(ErrorStatus.MISSED_DEADLINE_TRANSIENT, "The deadline passed before the run ended.")

_UNDER_WAY = frozenset({Phase.RUNNING, Phase.STOPPING, Phase.ABANDONED})


class Scheduler:
    """Executions that wait for a run permit, and those that run."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def submit(self, execution: Execution, now_ns: int) -> None:
        """Request a run permit for an execution."""
        execution.phase = Phase.READY
        execution.limit.begin(now_ns)
        if execution.limit.deadline_ns != NO_TIME:
            self._ledger.timers.set(execution.identifier, execution.limit.deadline_ns)
        self._ledger.emit(
            AwaitPermit(
                execution.identifier, execution.connection, execution.model, execution.priority
            )
        )

    def permit_granted(self, answer: PermitGranted) -> None:
        """Begin an execution, unless it has ended in the meantime."""
        execution = self._ledger.executions.get(answer.execution)
        if execution is None:
            return
        try:
            execution.begin()
        except DriverError as error:
            self.end(execution, failed(error))
            return
        execution.phase = Phase.RUNNING
        self._ledger.emit(run_of(execution))

    def finished(self, answer: RunFinished) -> None:
        """Handle the end of a run."""
        execution = self._ledger.executions.get(answer.execution)
        if execution is None or execution.phase not in _UNDER_WAY:
            return
        execution.end()
        if execution.phase is Phase.ABANDONED:
            self._forget(execution)
        else:
            reply = _outcome(execution, answer)
            self.end(execution, reply)
            offer(self._ledger, execution, answer, reply)

    def due(self, execution: Execution, now_ns: int) -> None:
        """Handle a passed deadline, or the end of the grace time after it."""
        if execution.phase not in _UNDER_WAY:
            self.end(execution, LATE)
            return
        self._stop(execution)
        give_up_ns = execution.limit.deadline_ns + self._ledger.settings.grace_ns
        if now_ns < give_up_ns:
            self._ledger.timers.set(execution.identifier, give_up_ns)
        else:
            self._abandon(execution)

    def abort(self, execution: Execution) -> None:
        """End an execution whose client is gone."""
        if execution.phase in {Phase.WAITING, Phase.READY}:
            self.end(execution, LATE)
        elif execution.phase is not Phase.ABANDONED:
            self._stop(execution)
            self._abandon(execution)

    def _stop(self, execution: Execution) -> None:
        if execution.phase is Phase.RUNNING:
            execution.phase = Phase.STOPPING
            self._ledger.emit(StopRun(execution.identifier))

    def _abandon(self, execution: Execution) -> None:
        execution.phase = Phase.ABANDONED
        self._settle(execution, LATE)
        self._tell(execution, LATE)

    def end(self, execution: Execution, reply: Executed | Failed) -> None:
        """End an execution that does not run, with this reply."""
        if execution.phase is Phase.READY:
            self._ledger.emit(CancelPermit(execution.identifier))
        execution.phase = Phase.ENDED
        self._settle(execution, reply)
        self._forget(execution)  # before the reply, so that the next call may be repeated
        self._tell(execution, reply)

    def _settle(self, execution: Execution, reply: Executed | Failed) -> None:
        """Cancel timers and announcements, close fences, and clear outputs after a failure."""
        ledger = self._ledger
        ledger.timers.cancel(execution.identifier)
        execution.forget()
        if reply.status is not ErrorStatus.NONE:
            execution.clear_outputs()
        for handle in execution.fences:
            del ledger.watchers[handle]
            ledger.emit(CloseFile(handle))
        execution.fences.clear()

    def _tell(self, execution: Execution, reply: Executed | Failed) -> None:
        ledger = self._ledger
        if execution.number is not None:
            ledger.send(execution.connection, execution.number, reply)
            execution.number = None
        if execution.is_fenced:
            timing = reply.timing if isinstance(reply, Executed) else UNTIMED
            execution.info = ExecutionInfo(reply.status, timing, timing)
            ledger.emit(SignalFence(execution.identifier, reply.status is ErrorStatus.NONE))

    def _end_session(self, execution: Execution) -> None:
        connection = self._ledger.connections.get(execution.connection)
        if connection is None or not execution.session:
            return
        for sessions in (connection.bursts, connection.reusables):
            session = sessions.get(execution.session)
            if session is not None and session.running == execution.identifier:
                session.running = 0

    def _forget(self, execution: Execution) -> None:
        execution.phase = Phase.ENDED
        self._end_session(execution)
        del self._ledger.executions[execution.identifier]
        resume(self._ledger, execution)
        execution.drop_work(self._ledger.emit)


def _outcome(execution: Execution, answer: RunFinished) -> Executed | Failed:
    """Return the reply for a run that has ended, and record its results in the buffers."""
    if answer.status not in {ErrorStatus.NONE, ErrorStatus.OUTPUT_INSUFFICIENT_SIZE}:
        return Failed(answer.status, answer.message or "The execution failed.")
    assert len(answer.shapes) == len(execution.outputs), answer
    try:
        shapes = _shapes(execution, answer)
    except DriverError as error:
        return failed(error)
    timing = UNTIMED if answer.status else execution.timing(answer.timing)
    return Executed(answer.status, shapes, timing)


def _shapes(execution: Execution, answer: RunFinished) -> tuple[OutputShape, ...]:
    """Return the output shapes and record them in the output buffers.

    Raises:
        DriverError: GENERAL_FAILURE: an output does not fit; RESOURCE_EXHAUSTED_TRANSIENT: its
            buffer may not grow.
    """
    if execution.is_fenced and answer.status is not ErrorStatus.NONE:
        raise failure("The memory of an output is too small.")
    filled = []
    for use in execution.uses:
        if use.is_output:
            shape = answer.shapes[use.key[2]]
            fits = combine(shape.dimensions, use.buffer.value_type.dimensions) is not None
            if not fits or not shape.is_sufficient:
                raise failure(f"A buffer cannot hold an output of {list(shape.dimensions)}.")
            make_room(use.buffer, shape.dimensions)
            filled.append((use.buffer, shape.dimensions))
    if answer.status is ErrorStatus.NONE:
        for buffer, dimensions in filled:
            buffer.fill(dimensions)
    return answer.shapes
