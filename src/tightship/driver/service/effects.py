"""Requests of the service to the server, as data. Carrying them out must not block its caller."""

from dataclasses import dataclass

from tightship.driver.protocol.messages import CacheFiles, Call
from tightship.driver.protocol.replies import Executed, Reply
from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.model import DataLocation, Model, ModelSource
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.pools import Pool
from tightship.driver.types.snapshot import Snapshot
from tightship.driver.types.status import Priority


@dataclass(frozen=True, slots=True)
class Send:
    """Answer a call; a `Launched` is sent with a new fence for its execution."""

    connection: int
    number: int
    reply: Reply


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Refuse a client with a message and close; no `Disconnected` need follow."""

    connection: int
    message: str


@dataclass(frozen=True, slots=True)
class CloseFile:
    """Close a file that is no longer needed; also stops watching it if it is a fence."""

    handle: int


@dataclass(frozen=True, slots=True)
class MapPool:
    """Map a pool, answered by `PoolMapped`; other pools are mapped on first use."""

    pool: Pool


@dataclass(frozen=True, slots=True)
class DropPool:
    """Unmap a pool and close its file, because nothing refers to it."""

    pool: Pool


@dataclass(frozen=True, slots=True)
class FindSupported:
    """Find which operations of a valid model can be run; answered by `SupportFound`."""

    query: int
    model: Model
    pools: tuple[Pool, ...]


@dataclass(frozen=True, slots=True)
class PrepareModel:
    """Prepare a model; answered by `PrepareFinished`.

    Attributes:
        source: Checked source; None to read the model from the cache.
        pools: Pools that the source names, in its order: a model's; a file's own and its
            externals'.
        cache: Handles of the files to save to or read from; None for neither.
        priority: Rank among models of the client.
    """

    model: int
    source: ModelSource | None
    pools: tuple[Pool, ...]
    preference: int
    deadline_ns: int
    cache: CacheFiles | None
    priority: int = Priority.MEDIUM


@dataclass(frozen=True, slots=True)
class StopPrepare:
    """Stop preparing a model that is no longer awaited; `PrepareFinished` still follows."""

    model: int


@dataclass(frozen=True, slots=True)
class DropModel:
    """Drop a model, because nothing refers to it."""

    model: int


@dataclass(frozen=True, slots=True)
class AllocateBuffer:
    """Allocate a buffer; answered by `BufferAllocated`.

    Attributes:
        roles: Model, whether it is an output, and index of each use.
    """

    token: int
    value_type: ValueType
    roles: tuple[tuple[int, bool, int], ...]


@dataclass(frozen=True, slots=True)
class DropBuffer:
    """Drop a buffer, because nothing refers to it."""

    token: int


@dataclass(frozen=True, slots=True)
class CopyBuffer:
    """Copy between a buffer and a whole pool; answered by `CopyFinished`.

    Attributes:
        dimensions: Dimensions of the copied value.
        is_into_buffer: Whether the buffer is the target.
    """

    copy: int
    token: int
    pool: Pool
    dimensions: Dimensions
    is_into_buffer: bool


@dataclass(frozen=True, slots=True)
class CopyBuffers:
    """Copy the value of one buffer into another; answered by `CopyFinished`."""

    copy: int
    token: int
    source: int
    dimensions: Dimensions


@dataclass(frozen=True, slots=True)
class Measure:
    """Complete a snapshot and write its encoding to the start of a file; answered by `Measured`."""

    query: int
    snapshot: Snapshot
    handle: int


@dataclass(frozen=True, slots=True)
class RunArgument:
    """Location of an input or output, in a pool or a buffer; in neither if it has no value.

    Attributes:
        dimensions: Dimensions; those of outputs may be partly unknown.
        room_bytes: Size to which an output's buffer may grow.
    """

    dimensions: Dimensions
    location: DataLocation | None = None
    pool: Pool | None = None
    token: int = 0
    room_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """Run a model on its run permit, which ends with the run; answered by `RunFinished`.

    A run that can be stopped is stopped at the deadline.
    """

    execution: int
    model: int
    inputs: tuple[RunArgument, ...]
    outputs: tuple[RunArgument, ...]
    deadline_ns: int
    loop_timeout_ns: int


@dataclass(frozen=True, slots=True)
class AwaitPermit:
    """Request a run permit for an execution; answered by `PermitGranted`.

    Attributes:
        priority: Rank among executions of the client.
    """

    execution: int
    connection: int
    model: int
    priority: int


@dataclass(frozen=True, slots=True)
class CancelPermit:
    """Withdraw the request for a run permit, or return the permit."""

    execution: int


@dataclass(frozen=True, slots=True)
class CacheCall:
    """Allow the server to run and answer an equal call on the connection without the service.

    Valid while a run permit is free and until `ForgetCalls`; the service is not notified.

    Attributes:
        session: Number by which `ForgetCalls` refers to it.
    """

    connection: int
    session: int
    call: Call
    run: Run
    reply: Executed


@dataclass(frozen=True, slots=True)
class ForgetCalls:
    """End the repeats of a session, or all if it is 0, and wait for one that runs."""

    connection: int
    session: int


@dataclass(frozen=True, slots=True)
class PauseCalls:
    """Suspend the repeats of a connection until `ResumeCalls`, and wait for one that runs."""

    connection: int


@dataclass(frozen=True, slots=True)
class ResumeCalls:
    """Resume the repeats of a connection that have not ended since."""

    connection: int


@dataclass(frozen=True, slots=True)
class AttendRing:
    """Map the file of a ring, then close it; repeated calls may come through the ring as well.

    All other calls come through the socket. The ring ends with its connection.
    """

    connection: int
    handle: int


@dataclass(frozen=True, slots=True)
class StopRun:
    """Stop a run and its writes as soon as possible; `RunFinished` still follows."""

    execution: int


@dataclass(frozen=True, slots=True)
class WatchFence:
    """Report by `FenceChanged` when a fence is signalled or fails."""

    handle: int


@dataclass(frozen=True, slots=True)
class SignalFence:
    """Signal the fence of an ended execution, or turn it to error."""

    execution: int
    is_ok: bool


Effect = (
    Send
    | CloseConnection
    | CloseFile
    | MapPool
    | DropPool
    | FindSupported
    | PrepareModel
    | StopPrepare
    | DropModel
    | AllocateBuffer
    | DropBuffer
    | CopyBuffer
    | CopyBuffers
    | Measure
    | AwaitPermit
    | CancelPermit
    | Run
    | CacheCall
    | ForgetCalls
    | PauseCalls
    | ResumeCalls
    | AttendRing
    | StopRun
    | WatchFence
    | SignalFence
)
