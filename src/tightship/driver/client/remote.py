"""Models and buffers that are in a driver, and the ways to run them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from tightship.driver.client.fence import Fence
from tightship.driver.client.repeated import Known, Recent, Repeated
from tightship.driver.client.segment import Array, Placed, Segment
from tightship.driver.client.session import Session
from tightship.driver.client.staging import InBuffer, Input, Output, Staged, stage
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import (
    BurstOpened,
    Done,
    Executed,
    ExecutionCreated,
    ExecutionInfo,
    Launched,
    ModelPrepared,
    Reply,
)
from tightship.driver.rules.deadline import after
from tightship.driver.rules.dimensions import Dimensions
from tightship.driver.rules.status import NO_TIME, ErrorStatus
from tightship.errors import DriverError

Results = tuple[Array | None, ...]


class DeviceBuffer:
    """Memory in the driver that inputs and outputs may be in.

    Attributes:
        token: Its name on this connection.
    """

    def __init__(self, session: Session, token: int) -> None:
        self._session = session
        self._whole = InBuffer(token)
        self.token = token

    def of(self, *dimensions: int) -> InBuffer:
        """It as an argument; dimensions are given where the model leaves them open."""
        return InBuffer(self.token, dimensions) if dimensions else self._whole

    def copy_from(self, source: ArrayLike, dimensions: Dimensions = ()) -> None:
        """Fill it from an array of exactly its size.

        Raises:
            DriverError: INVALID_ARGUMENT: the size or the dimensions do not fit.
        """
        array = np.asarray(source)
        with Segment(self._session, max(1, array.nbytes)) as segment:
            segment.place(array.shape, array.dtype).array[...] = array
            self._session.expect(Done, m.CopyFrom(self.token, segment.pool, dimensions))

    def copy_to(self, target: Array) -> None:
        """Copy what it holds into an array of exactly its size.

        Raises:
            DriverError: GENERAL_FAILURE: it holds nothing; INVALID_ARGUMENT: the size differs.
        """
        with Segment(self._session, max(1, target.nbytes)) as segment:
            self._session.expect(Done, m.CopyTo(self.token, segment.pool))
            target[...] = segment.place(target.shape, target.dtype).array

    def close(self) -> None:
        """Give it back."""
        self._session.forget(m.Free(self.token))


class _Released:
    """Something in the driver that is given back once."""

    def __init__(self, session: Session, release: m.Call) -> None:
        self._session = session
        self._release: m.Call | None = release

    def close(self) -> None:
        """Give it back. Harmless when repeated."""
        if self._release is not None:
            self._session.forget(self._release)
            self._release = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Stage:
    """A segment that grows to what the largest request needed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._segment: Segment | None = None

    def of(self, size_bytes: int) -> Segment:
        segment = self._segment
        if segment is None or segment.size_bytes < size_bytes:
            self.close()
            segment = self._segment = Segment(self._session, max(1, size_bytes))
        segment.reset()
        return segment

    def close(self) -> None:
        if self._segment is not None:
            self._segment.close()
            self._segment = None


class RemoteModel(_Released):
    """A model in a driver; one thread at a time may use it.

    Attributes:
        interface: Its number, and types of its inputs and outputs, in order.
    """

    def __init__(self, session: Session, interface: ModelPrepared) -> None:
        super().__init__(session, m.ReleaseModel(interface.model))
        self.interface = interface
        self._stage = _Stage(session)
        self._recent = Recent()

    @property
    def identifier(self) -> int:
        """Its number on this connection."""
        return self.interface.model

    def execute(
        self,
        inputs: Sequence[Input],
        outputs: Sequence[Output] | None = None,
        *,
        timeout_s: float | None = None,
    ) -> Results:
        """Run it and wait.

        Args:
            inputs: An array for each input; or one that is placed in a segment, or a buffer,
                which are used where they are.
            outputs: Where each output goes; None makes it a new array.
            timeout_s: Seconds after which the call fails.

        Returns:
            For each output its array; None where it is in a buffer.

        Raises:
            DriverError: As the driver says.
            InputError: An array does not fit.
        """
        known = self._recent.find(inputs, outputs) if timeout_s is None else None
        if known is None:
            staged = stage(self.interface, inputs, outputs, self._stage.of)
            call = m.Execute(self.identifier, staged.request, deadline_ns=after(timeout_s))
            known = _known(inputs, outputs, staged, call)
            if known is None:
                _check(self._session.expect(Executed, call))
                return results_of(staged, outputs)
            self._recent.add(known)
        _check(self._session.repeat(known.call))
        return known.results

    def execute_fenced(
        self,
        inputs: Sequence[Input],
        outputs: Sequence[Output] | None = None,
        *,
        wait_for: Sequence[Fence] = (),
        timeout_s: float | None = None,
    ) -> "FencedExecution":
        """Have it run once some fences are signalled, and go on; otherwise as `execute`."""
        stage_of_run = _Stage(self._session)
        staged = stage(self.interface, inputs, outputs, stage_of_run.of)
        call = m.ExecuteFenced(
            self.identifier,
            staged.request,
            tuple(range(len(wait_for))),
            measure_timing=True,
            deadline_ns=after(timeout_s),
        )
        try:
            reply, files = self._session.exchange(call, [each.fileno() for each in wait_for])
        except DriverError:
            stage_of_run.close()
            raise
        assert isinstance(reply, Launched), reply
        ends = staged, outputs, stage_of_run
        return FencedExecution(self._session, reply.execution, Fence(files[0]), ends)

    def burst(self) -> "Burst":
        """A row of executions that keeps their memory mapped."""
        opened = self._session.expect(BurstOpened, m.OpenBurst(self.identifier))
        return Burst(self._session, self.interface, opened.burst)

    def reusable(
        self, inputs: Sequence[Input], outputs: Sequence[Output] | None = None
    ) -> "Reusable":
        """An execution that is checked once and run often; arguments as for `execute`."""
        kept = _Stage(self._session)
        staged = stage(self.interface, inputs, outputs, kept.of)
        try:
            call = m.CreateExecution(self.identifier, staged.request)
            created = self._session.expect(ExecutionCreated, call)
        except DriverError:
            kept.close()
            raise
        return Reusable(self._session, created.execution, staged, kept)

    def close(self) -> None:
        """Give it back. Harmless when repeated."""
        self._stage.close()
        super().close()


@dataclass(slots=True)
class _Slots:
    """A number for each pool of a burst."""

    by_pool: dict[int, int]

    def of(self, staged: Staged) -> tuple[int, ...]:
        return tuple(
            m.NO_SLOT
            if pool.is_token
            else self.by_pool.setdefault(pool.identifier, len(self.by_pool))
            for pool in staged.request.pools
        )


class Burst(_Released):
    """Executions of one model, one at a time."""

    def __init__(self, session: Session, interface: ModelPrepared, burst: int) -> None:
        super().__init__(session, m.CloseBurst(burst))
        self._interface = interface
        self._burst = burst
        self._slots = _Slots({})
        self._recent = Recent()
        self._stage = _Stage(session)

    def execute(
        self,
        inputs: Sequence[Input],
        outputs: Sequence[Output] | None = None,
        *,
        timeout_s: float | None = None,
    ) -> Results:
        """As `RemoteModel.execute`."""
        known = self._recent.find(inputs, outputs) if timeout_s is None else None
        if known is None:
            staged = stage(self._interface, inputs, outputs, self._stage.of)
            slots = self._slots.of(staged)
            call = m.BurstExecute(self._burst, staged.request, slots, deadline_ns=after(timeout_s))
            known = _known(inputs, outputs, staged, call)
            if known is None:
                _check(self._session.expect(Executed, call))
                return results_of(staged, outputs)
            self._recent.add(known)
        _check(self._session.repeat(known.call))
        return known.results

    def close(self) -> None:
        """End it. Harmless when repeated."""
        super().close()
        self._stage.close()


class Reusable(_Released):
    """A request that was checked, and its arrays.

    Attributes:
        inputs: To write to before a run; None for a buffer.
        outputs: Of the latest run; None for a buffer.
    """

    def __init__(self, session: Session, execution: int, staged: Staged, kept: _Stage) -> None:
        super().__init__(session, m.ReleaseExecution(execution))
        self._execution = execution
        self._call = Repeated(m.RunExecution(execution))
        self._kept = kept
        self.inputs = staged.inputs
        self.outputs = staged.outputs

    def execute(self, *, timeout_s: float | None = None) -> Results:
        """Run it and wait.

        Raises:
            DriverError: As the driver says.
        """
        if timeout_s is None:
            _check(self._session.repeat(self._call))
        else:
            call = m.RunExecution(self._execution, after(timeout_s))
            _check(self._session.expect(Executed, call))
        return self.outputs

    def close(self) -> None:
        """Give it back; its arrays stay valid. Harmless when repeated."""
        super().close()
        self._kept.close()


class FencedExecution(_Released):
    """An execution that was begun.

    Attributes:
        fence: Signalled when it has ended.
    """

    def __init__(
        self,
        session: Session,
        execution: int,
        fence: Fence,
        ends: tuple[Staged, Sequence[Output] | None, _Stage],
    ) -> None:
        super().__init__(session, m.ReleaseExecution(execution))
        self._execution = execution
        self._staged, self._outputs, self._stage = ends
        self.fence = fence

    def info(self) -> ExecutionInfo:
        """How it ended.

        Raises:
            DriverError: GENERAL_FAILURE: it has not.
        """
        return self._session.expect(ExecutionInfo, m.GetExecutionInfo(self._execution))

    def wait(self, timeout_s: float | None = None) -> Results:
        """Wait for its end; what `RemoteModel.execute` returns.

        Raises:
            DriverError: As `Fence.wait`.
        """
        self.fence.wait(timeout_s)
        return results_of(self._staged, self._outputs)

    def close(self) -> None:
        """Forget it; it ends as it would. Harmless when repeated."""
        super().close()
        self._stage.close()
        self.fence.close()


def _known(
    inputs: Sequence[Input],
    outputs: Sequence[Output] | None,
    staged: Staged,
    call: m.Execute | m.BurstExecute,
) -> Known | None:
    """A request to be made again; None if arrays are copied, or it has a deadline."""
    if outputs is None or call.deadline_ns != NO_TIME:
        return None
    if not all(isinstance(each, (Placed, InBuffer)) for each in (*inputs, *outputs)):
        return None
    results = results_of(staged, outputs)
    return Known(tuple(inputs), tuple(outputs), Repeated(call), results)


def _check(reply: Reply) -> None:
    assert isinstance(reply, Executed), reply
    if reply.status is not ErrorStatus.NONE:
        shapes = ", ".join(str(list(shape.dimensions)) for shape in reply.shapes)
        raise DriverError(
            f"An output did not fit its place; the outputs have shapes {shapes}.",
            status=reply.status,
        )


def results_of(staged: Staged, outputs: Sequence[Output] | None) -> Results:
    """The outputs on this side; copies of those that the next run may write over."""
    given = [None] * len(staged.outputs) if outputs is None else outputs
    return tuple(
        array if array is None or isinstance(place, Placed) else array.copy()
        for array, place in zip(staged.outputs, given, strict=True)
    )
