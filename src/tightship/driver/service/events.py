"""Events that the service handles: calls of clients, answers of the server, and time."""

from dataclasses import dataclass

from tightship.driver.protocol.messages import Call
from tightship.driver.protocol.replies import UNTIMED, OutputShape, Timing
from tightship.driver.types.attachment import Attachment
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.snapshot import Caller
from tightship.driver.types.status import ErrorStatus


@dataclass(frozen=True, slots=True)
class Connected:
    """A client has connected; its number is never reused."""

    caller: Caller


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A client has disconnected."""

    connection: int


@dataclass(frozen=True, slots=True)
class Received:
    """A call has arrived."""

    connection: int
    number: int
    call: Call
    files: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class Malformed:
    """A message was refused: not a call, a wrong count of files, or a file that does not answer."""

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
    """Answer to `FindSupported`; GENERAL_FAILURE: a pool cannot be mapped."""

    query: int
    status: ErrorStatus
    operations: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class PrepareFinished:
    """Answer to `PrepareModel`.

    Attributes:
        inputs, outputs: Types of a model that is not built of operands; ignored for others.
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
class PermitGranted:
    """Answer to `AwaitPermit`."""

    execution: int


@dataclass(frozen=True, slots=True)
class RunFinished:
    """Answer to `Run`; GENERAL_FAILURE: a pool cannot be mapped.

    Attributes:
        shapes: Shape of each output, if the status is NONE or OUTPUT_INSUFFICIENT_SIZE.
        message: Cause of a failure, if known.
    """

    execution: int
    status: ErrorStatus
    shapes: tuple[OutputShape, ...] = ()
    timing: Timing = UNTIMED
    message: str = ""


@dataclass(frozen=True, slots=True)
class FenceChanged:
    """A watched fence was signalled or has failed."""

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
    | PermitGranted
    | RunFinished
    | FenceChanged
    | Tick
)
