"""What happens to the service: what clients say, what the rim has done, and time."""

from dataclasses import dataclass

from tightship.driver.protocol.messages import Call
from tightship.driver.protocol.replies import UNTIMED, OutputShape, Timing
from tightship.driver.types.attachment import Attachment
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.snapshot import Caller
from tightship.driver.types.status import ErrorStatus


@dataclass(frozen=True, slots=True)
class Connected:
    """A client is there; its number is never used again."""

    caller: Caller


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A client is gone."""

    connection: int


@dataclass(frozen=True, slots=True)
class Received:
    """A client calls."""

    connection: int
    number: int
    call: Call
    files: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class Malformed:
    """Bytes came that are no call, or with another count of files, or a file does not answer."""

    connection: int
    number: int
    message: str
    files: tuple[Attachment, ...] = ()
    status: ErrorStatus = ErrorStatus.INVALID_ARGUMENT


@dataclass(frozen=True, slots=True)
class PoolMapped:
    """Answer to `MapPool`."""

    pool: int
    is_mapped: bool


@dataclass(frozen=True, slots=True)
class SupportFound:
    """Answer to `FindSupported`; GENERAL_FAILURE for a pool that cannot be mapped."""

    query: int
    status: ErrorStatus
    operations: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class PrepareFinished:
    """Answer to `PrepareModel`.

    Attributes:
        inputs, outputs: Of a model that is not described operand by operand; else not looked at.
    """

    model: int
    status: ErrorStatus
    inputs: tuple[ValueType, ...] = ()
    outputs: tuple[ValueType, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class BufferAllocated:
    """Answer to `AllocateBuffer`."""

    token: int
    status: ErrorStatus


@dataclass(frozen=True, slots=True)
class CopyFinished:
    """Answer to `CopyBuffers` and `CopyBuffer`; INVALID_ARGUMENT: the pool cannot be mapped."""

    copy: int
    status: ErrorStatus


@dataclass(frozen=True, slots=True)
class Measured:
    """Answer to `Measure`."""

    query: int
    status: ErrorStatus
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class TurnCame:
    """Answer to `AwaitTurn`."""

    execution: int


@dataclass(frozen=True, slots=True)
class RunFinished:
    """Answer to `Run`; GENERAL_FAILURE for a pool that cannot be mapped.

    Attributes:
        shapes: One for each output, where the status is NONE or OUTPUT_INSUFFICIENT_SIZE.
        message: Why it failed, where that is known.
    """

    execution: int
    status: ErrorStatus
    shapes: tuple[OutputShape, ...] = ()
    timing: Timing = UNTIMED
    message: str = ""


@dataclass(frozen=True, slots=True)
class FenceChanged:
    """A watched fence is signalled, or failed."""

    handle: int
    is_ok: bool


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = (
    Connected
    | Disconnected
    | Received
    | Malformed
    | PoolMapped
    | SupportFound
    | PrepareFinished
    | BufferAllocated
    | CopyFinished
    | Measured
    | TurnCame
    | RunFinished
    | FenceChanged
    | Tick
)
