"""Models in a driver, and the ways to run them."""

from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import ArrayLike

from tightship.driver.client.burst import Burst
from tightship.driver.client.call_cache import CallCache, known_of
from tightship.driver.client.fence import Fence
from tightship.driver.client.open_interface import OpenInterface
from tightship.driver.client.segment import Placed, Stage
from tightship.driver.client.session import CachedCall, Released, Session
from tightship.driver.client.staging import (
    InBuffer,
    Input,
    Output,
    Results,
    Staged,
    check,
    fill,
    results_of,
    stage,
)
from tightship.driver.client.varying import ATTEMPTS, VaryingOutputs, has_open_outputs
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import (
    UNTIMED,
    BurstOpened,
    Executed,
    ExecutionCreated,
    ExecutionInfo,
    Launched,
    ModelPrepared,
)
from tightship.driver.types.deadline import after, lasting
from tightship.driver.types.request import Request
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError
from tightship.public_calls import public_methods

NO_REQUEST = Request((), (), ())
COPIES_MAX = 4
"""Dimensions of inputs for which memory for copies of arrays is kept."""


@public_methods
class RemoteModel(Released):
    """Model in a driver, for one thread at a time.

    Attributes:
        interface: Identifier, and types of inputs and outputs in order.
    """

    def __init__(
        self, session: Session, interface: ModelPrepared, *, depends_on_data: bool = False
    ) -> None:
        """Wrap a model; `depends_on_data` says that unknown output dimensions depend on data."""
        super().__init__(session, m.ReleaseModel(interface.model))
        self.interface = interface
        varies = depends_on_data and has_open_outputs(interface)
        self._types = OpenInterface(session, interface, varies=varies)
        self._varying = VaryingOutputs(interface.outputs) if varies else None
        self._stage = Stage(session)
        self._call_cache = CallCache()
        self._copies: list[tuple[ModelPrepared, Reusable]] = []

    @property
    def identifier(self) -> int:
        """Identifier on this connection."""
        return self.interface.model

    def execute(
        self,
        inputs: Sequence[Input],
        outputs: Sequence[Output] | None = None,
        *,
        timeout_s: float | None = None,
        loop_timeout_s: float | None = None,
        measure_timing: bool = False,
    ) -> Results:
        """Run and wait.

        Args:
            inputs: An array for each input; or an array placed in a segment, or a buffer, used in
                place.
            outputs: Placed array or buffer for each output, None for a new array. A placed array
                must have the dimensions of the output.
            timeout_s: Seconds after which the call fails.
            loop_timeout_s: Seconds for each loop of the model, at most 15; 2 if None.
            measure_timing: Whether the results include timing.

        Raises:
            DriverError: Error of the driver.
            InputError: An array does not fit.
        """
        is_plain = timeout_s is None and loop_timeout_s is None and not measure_timing
        known = self._call_cache.find(inputs, outputs) if is_plain else None
        if known is None:
            plain = [each for each in inputs if not isinstance(each, (Placed, InBuffer))]
            is_plain_run = len(plain) == len(inputs) and outputs is None and is_plain
            if is_plain_run and self._varying is None:
                return self._on_copies(plain)
            call = m.Execute(
                self.identifier,
                NO_REQUEST,
                measure_timing,
                deadline_ns=after(timeout_s),
                loop_timeout_ns=lasting(loop_timeout_s),
            )
            if self._varying is not None and (outputs is None or None in outputs):
                return self._with_room(inputs, outputs, call, self._varying)
            types = self._types.of(inputs, outputs, call.loop_timeout_ns)
            staged = stage(types, inputs, outputs, self._stage.of)
            call = replace(call, request=staged.request)
            known = known_of(inputs, outputs, staged, call) if is_plain else None
            if known is None:
                timing = check(self._session.expect(Executed, call))
                return results_of(staged, outputs, timing)
            self._call_cache.add(known)
        check(self._session.repeat(known.call))
        return known.results

    def _with_room(
        self,
        inputs: Sequence[Input],
        outputs: Sequence[Output] | None,
        call: m.Execute,
        rooms: VaryingOutputs,
    ) -> Results:
        """Run again until there is room for outputs whose size only a run determines."""
        types = self._types.with_inputs(inputs)
        for _ in range(ATTEMPTS):
            staged = rooms.stage(types, inputs, outputs, self._stage.of)
            reply = self._session.expect(Executed, replace(call, request=staged.request))
            if reply.status is ErrorStatus.NONE:
                break
            rooms.grow(reply.shapes)
        check(reply)
        return rooms.results_of(staged, outputs, reply)

    def _on_copies(self, inputs: Sequence[ArrayLike]) -> Results:
        """Run on copies in memory that the driver checks once."""
        types = self._types.of(inputs, None)
        for known, copies in self._copies:
            if known is types:
                fill(copies.inputs, types, inputs)
                break
        else:
            copies = self.reusable(inputs)
            if len(self._copies) == COPIES_MAX:
                self._copies.pop(0)[1].close()
            self._copies.append((types, copies))
        return Results([each if each is None else each.copy() for each in copies.execute()])

    def execute_fenced(
        self,
        inputs: Sequence[Input],
        outputs: Sequence[Output] | None = None,
        *,
        wait_for: Sequence[Fence] = (),
        timeout_s: float | None = None,
        loop_timeout_s: float | None = None,
        measure_timing: bool = False,
    ) -> "FencedExecution":
        """Start a run that begins once some fences are signalled; arguments as for `execute`."""
        stage_of_run = Stage(self._session)
        loop_ns = lasting(loop_timeout_s)
        types = self._types.of(inputs, outputs, loop_ns)
        staged = stage(types, inputs, outputs, stage_of_run.of)
        call = m.ExecuteFenced(
            self.identifier,
            staged.request,
            tuple(range(len(wait_for))),
            measure_timing,
            deadline_ns=after(timeout_s),
            loop_timeout_ns=loop_ns,
        )
        try:
            reply, files = self._session.exchange(call, [each.fileno() for each in wait_for])
        except DriverError:
            stage_of_run.close()
            raise
        assert isinstance(reply, Launched), reply
        ends = staged, outputs, stage_of_run
        number, fence = reply.execution, Fence(files[0])
        return FencedExecution(self._session, number, fence, ends, measures_timing=measure_timing)

    def burst(self) -> Burst:
        """Begin a burst of executions that keeps memory mapped."""
        opened = self._session.expect(BurstOpened, m.OpenBurst(self.identifier))
        return Burst(self._session, self._types, opened.burst)

    def reusable(
        self,
        inputs: Sequence[Input],
        outputs: Sequence[Output] | None = None,
        *,
        loop_timeout_s: float | None = None,
        measure_timing: bool = False,
    ) -> "Reusable":
        """Check an execution once, to run it often; arguments as for `execute`."""
        kept, loop_ns = Stage(self._session), lasting(loop_timeout_s)
        staged = stage(self._types.of(inputs, outputs, loop_ns), inputs, outputs, kept.of)
        try:
            call = m.CreateExecution(self.identifier, staged.request, measure_timing, loop_ns)
            created = self._session.expect(ExecutionCreated, call)
        except DriverError:
            kept.close()
            raise
        number = created.execution
        return Reusable(self._session, number, staged, kept, measures_timing=measure_timing)

    def close(self) -> None:
        """Release the model. Harmless when repeated."""
        for _, copies in self._copies:
            copies.close()
        self._copies.clear()
        self._stage.close()
        super().close()


@public_methods
class Reusable(Released):
    """Checked request and its arrays.

    Attributes:
        inputs: Arrays to write before a run; None for a buffer.
        outputs: Results of the latest run; None for a buffer.
    """

    def __init__(
        self,
        session: Session,
        execution: int,
        staged: Staged,
        kept: Stage,
        *,
        measures_timing: bool,
    ) -> None:
        super().__init__(session, m.ReleaseExecution(execution))
        self._measures_timing = measures_timing
        self._execution = execution
        self._call = CachedCall(m.RunExecution(execution))
        self._kept = kept
        self.inputs = staged.inputs
        self.outputs = Results(staged.outputs)

    def execute(self, *, timeout_s: float | None = None) -> Results:
        """Run and wait.

        Raises:
            DriverError: Error of the driver.
        """
        if timeout_s is None:
            timing = check(self._session.repeat(self._call))
        else:
            call = m.RunExecution(self._execution, after(timeout_s))
            timing = check(self._session.expect(Executed, call))
        return Results(self.outputs, timing) if self._measures_timing else self.outputs

    def close(self) -> None:
        """Release it; its arrays stay valid. Harmless when repeated."""
        super().close()
        self._kept.close()


@public_methods
class FencedExecution(Released):
    """Execution that was started.

    Attributes:
        fence: Fence that signals its end.
    """

    def __init__(
        self,
        session: Session,
        execution: int,
        fence: Fence,
        ends: tuple[Staged, Sequence[Output] | None, Stage],
        *,
        measures_timing: bool,
    ) -> None:
        super().__init__(session, m.ReleaseExecution(execution))
        self._execution = execution
        self._staged, self._outputs, self._stage = ends
        self._measures_timing = measures_timing
        self.fence = fence

    def info(self) -> ExecutionInfo:
        """Return status and timing.

        Raises:
            DriverError: GENERAL_FAILURE: the execution has not ended.
        """
        return self._session.expect(ExecutionInfo, m.GetExecutionInfo(self._execution))

    def wait(self, timeout_s: float | None = None) -> Results:
        """Wait for the end and return the results, as `RemoteModel.execute` does.

        Raises:
            DriverError: As from `Fence.wait`.
        """
        self.fence.wait(timeout_s)
        timing = self.info().timing_fenced if self._measures_timing else UNTIMED
        return results_of(self._staged, self._outputs, timing)

    def close(self) -> None:
        """Release it; a run under way completes. Harmless when repeated."""
        super().close()
        self._stage.close()
        self.fence.close()
