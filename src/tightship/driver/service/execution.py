"""Executions from call to end, and the rules of deadlines."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field

from tightship.driver.protocol.messages import Call
from tightship.driver.protocol.replies import ExecutionInfo, Timing
from tightship.driver.service.buffers import Buffer, RoleKey
from tightship.driver.service.effects import Effect, RunArgument
from tightship.driver.service.holds import RefCounted
from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.status import (
    LOOP_TIMEOUT_DEFAULT_NS,
    LOOP_TIMEOUT_MAX_NS,
    NO_TIME,
    ErrorStatus,
    invalid,
)
from tightship.errors import DriverError


class Phase(enum.Enum):
    """States of an execution."""

    WAITING = "waits for fences"
    READY = "waits for a run permit"
    RUNNING = "runs"
    STOPPING = "runs until it notices the request to stop"
    ABANDONED = "runs although it was answered"
    ENDED = "has ended"


@dataclass(frozen=True, slots=True)
class BufferUse:
    """Argument in a buffer.

    Attributes:
        dimensions: Dimensions of model, request and, for an output, allocation combined.
    """

    buffer: Buffer
    key: RoleKey
    dimensions: Dimensions

    @property
    def is_output(self) -> bool:
        """Whether the execution writes it."""
        return self.key[1]


@dataclass(slots=True)
class Limit:
    """Time limits of an execution; -1 is none.

    Attributes:
        duration_ns: Time limit from when the execution can begin.
    """

    deadline_ns: int = NO_TIME
    duration_ns: int = NO_TIME
    loop_timeout_ns: int = NO_TIME

    def check(self) -> None:
        """Check the values, and apply default and maximum of the loop timeout.

        Raises:
            DriverError: INVALID_ARGUMENT.
        """
        for name, value in (
            ("deadline", self.deadline_ns),
            ("duration", self.duration_ns),
            ("loop timeout", self.loop_timeout_ns),
        ):
            if value < NO_TIME:
                raise invalid(f"The {name} is {value} ns; it must be at least -1.")
        if self.loop_timeout_ns == NO_TIME:
            self.loop_timeout_ns = LOOP_TIMEOUT_DEFAULT_NS
        self.loop_timeout_ns = min(self.loop_timeout_ns, LOOP_TIMEOUT_MAX_NS)

    def begin(self, now_ns: int) -> None:
        """Start the duration now; it moves the deadline if it ends earlier."""
        if self.duration_ns != NO_TIME:
            stop_ns = now_ns + self.duration_ns
            self.deadline_ns = (
                stop_ns if self.deadline_ns == NO_TIME else min(stop_ns, self.deadline_ns)
            )


def check_deadline(deadline_ns: int, now_ns: int) -> None:
    """Check that a deadline has not passed.

    Raises:
        DriverError: MISSED_DEADLINE_PERSISTENT.
    """
    if NO_TIME < deadline_ns <= now_ns:
        raise DriverError(
            "The deadline had passed when the call came.",
            status=ErrorStatus.MISSED_DEADLINE_PERSISTENT,
        )


@dataclass(slots=True, eq=False)
class Execution:
    """One run of a model.

    Attributes:
        connection: Number of the client.
        number: Number of the unanswered call; None once answered, or for a fenced execution.
        work: Reference that keeps model, pools and buffers until the end.
        record: For a fenced execution, its charge to the client until it is released.
        fences: Handles of the fences it waits for.
        call: Call that is answered when the run ends; None for a fenced execution.
        session: Its burst or reusable execution; 0 for none.
        is_released: Whether the client will not query the result.
        info: Result of a fenced execution.
    """

    identifier: int
    connection: int
    number: int | None
    model: int
    priority: int
    work: RefCounted
    record: RefCounted | None
    inputs: tuple[RunArgument, ...]
    outputs: tuple[RunArgument, ...]
    uses: tuple[BufferUse, ...]
    limit: Limit
    measure_timing: bool = False
    call: Call | None = None
    session: int = 0
    phase: Phase = Phase.READY
    fences: set[int] = field(default_factory=set)
    is_released: bool = False
    info: ExecutionInfo | None = None

    @property
    def is_fenced(self) -> bool:
        """Whether a fence signals its end."""
        return self.record is not None

    def timing(self, measured: Timing) -> Timing:
        """Return the timing to report to the client."""
        if not self.measure_timing:
            return Timing()
        return Timing(min(measured.on_device_ns, measured.in_driver_ns), measured.in_driver_ns)

    def expect(self) -> None:
        """Announce the outputs, so that later executions may read them."""
        for use in self.uses:
            if use.is_output:
                use.buffer.expected[self.identifier] = use.dimensions

    def begin(self) -> None:
        """Register as reader and writer of the buffers, or of none of them.

        Raises:
            DriverError: As from `check_filled`, `check_read` and `begin` of `Buffer`.
        """
        taken: list[BufferUse] = []
        try:
            for use in self.uses:
                if not use.is_output:
                    use.buffer.check_filled()
                    use.buffer.check_read(use.dimensions)
                use.buffer.begin(to_write=use.is_output)
                taken.append(use)
        except DriverError:
            for use in taken:
                use.buffer.end(to_write=use.is_output)
            raise

    def end(self) -> None:
        """Release the buffers that `begin` took."""
        for use in self.uses:
            use.buffer.end(to_write=use.is_output)

    def clear_outputs(self) -> None:
        """Clear the output buffers after a failure."""
        for use in self.uses:
            if use.is_output:
                use.buffer.clear()

    def forget(self) -> None:
        """Withdraw the outputs that `expect` announced."""
        for use in self.uses:
            use.buffer.expected.pop(self.identifier, None)

    def drop_work(self, emit: Callable[[Effect], None]) -> None:
        """Release the references of an ended run, and the record if the client has released it."""
        self.work.release(emit)
        if self.record is not None and self.is_released:
            self.record.release(emit)

    def release(self, emit: Callable[[Effect], None]) -> None:
        """Release the record, at once or at the end of the run."""
        self.is_released = True
        if self.record is not None and self.phase is Phase.ENDED:
            self.record.release(emit)
