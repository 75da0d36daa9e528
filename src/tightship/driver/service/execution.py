"""An execution from the call to its end, and the rules of deadlines."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field

from tightship.driver.protocol.messages import Call
from tightship.driver.protocol.replies import ExecutionInfo, Timing
from tightship.driver.service.buffers import Buffer, RoleKey
from tightship.driver.service.effects import Effect, RunArgument
from tightship.driver.service.holds import Held
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
    """How far an execution is."""

    WAITING = "waits for fences"
    READY = "waits for its turn"
    RUNNING = "runs"
    STOPPING = "runs, and was asked to stop"
    ABANDONED = "runs, but nobody waits for it any more"
    ENDED = "has ended"


@dataclass(frozen=True, slots=True)
class BufferUse:
    """An argument that is a buffer.

    Attributes:
        dimensions: Of model, request and, of an output, allocation together.
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
    """When an execution must have ended; -1 is never.

    Attributes:
        duration_ns: From when it could begin.
    """

    deadline_ns: int = NO_TIME
    duration_ns: int = NO_TIME
    loop_timeout_ns: int = NO_TIME

    def check(self) -> None:
        """Check by itself.

        Raises:
            DriverError: INVALID_ARGUMENT.
        """
        for name, value in (
            ("deadline", self.deadline_ns),
            ("duration", self.duration_ns),
            ("loop timeout", self.loop_timeout_ns),
        ):
            if value < NO_TIME:
                raise invalid(f"The {name} is {value} ns; it is -1 or more.")
        if self.loop_timeout_ns == NO_TIME:
            self.loop_timeout_ns = LOOP_TIMEOUT_DEFAULT_NS
        self.loop_timeout_ns = min(self.loop_timeout_ns, LOOP_TIMEOUT_MAX_NS)

    def begin(self, now_ns: int) -> None:
        """The duration counts from now; the earlier of both is the deadline."""
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
        number: Of the call that is still to be answered; None once it was, or if it is fenced.
        work: Holds the model, the pools and the buffers until it has ended.
        record: Of a fenced one, counts it among the client's executions until it is released.
        fences: Handles of files that are waited for.
        call: What asked for it, where it is answered when it has run.
        session: The burst or the reusable execution that it is of; 0 for none.
        is_released: Nobody will ask how it ended.
        info: How it ended, of a fenced one.
    """

    identifier: int
    connection: int
    number: int | None
    model: int
    priority: int
    work: Held
    record: Held | None
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
        """Whether its end is told by a fence."""
        return self.record is not None

    def timing(self, measured: Timing) -> Timing:
        """What the client is told of the time it took."""
        if not self.measure_timing:
            return Timing()
        return Timing(min(measured.on_device_ns, measured.in_driver_ns), measured.in_driver_ns)

    def expect(self) -> None:
        """From now on others may count on what it will write."""
        for use in self.uses:
            if use.is_output:
                use.buffer.expected[self.identifier] = use.dimensions

    def begin(self) -> None:
        """Take the buffers, now that it runs.

        Raises:
            DriverError: As `check_filled`, `check_read` and `begin` of `Buffer`; none is taken.
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
        """Give the buffers back that `begin` took."""
        for use in self.uses:
            use.buffer.end(to_write=use.is_output)

    def clear_outputs(self) -> None:
        """It failed: the buffers it was to write hold nothing."""
        for use in self.uses:
            if use.is_output:
                use.buffer.clear()

    def forget(self) -> None:
        """Nobody is to count on what it will write."""
        for use in self.uses:
            use.buffer.expected.pop(self.identifier, None)

    def drop_work(self, emit: Callable[[Effect], None]) -> None:
        """It has ended: give back what it held, and its record unless somebody may ask for it."""
        self.work.let_go(emit)
        if self.record is not None and self.is_released:
            self.record.let_go(emit)

    def release(self, emit: Callable[[Effect], None]) -> None:
        """Nobody will ask how it ended."""
        self.is_released = True
        if self.record is not None and self.phase is Phase.ENDED:
            self.record.let_go(emit)
