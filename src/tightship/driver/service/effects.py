"""What the service asks of the rim, as data. None of it may block the caller of the service."""

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
    """Answer a call; beside a `Launched` goes the fence of its execution, which is made now."""

    connection: int
    number: int
    reply: Reply


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """The client may not connect: tell why and close; no `Disconnected` need come."""

    connection: int
    message: str


@dataclass(frozen=True, slots=True)
class CloseFile:
    """Close a file that came with a message and is not needed; also ends watching a fence."""

    handle: int


@dataclass(frozen=True, slots=True)
class MapPool:
    """Map a pool; answered by `PoolMapped`. Without it, a pool is mapped when it is first used."""

    pool: Pool


@dataclass(frozen=True, slots=True)
class DropPool:
    """Nobody needs a pool any more: unmap it and close its file."""

    pool: Pool


@dataclass(frozen=True, slots=True)
class FindSupported:
    """Say which operations of a valid model can be run; answered by `SupportFound`."""

    query: int
    model: Model
    pools: tuple[Pool, ...]


@dataclass(frozen=True, slots=True)
class PrepareModel:
    """Prepare a model; answered by `PrepareFinished`.

    Attributes:
        source: None to read it from the cache.
        pools: All that the source names, in its order: a model's pools; a file's and its externals.
        cache: Handles of the files to save to, or to read from; None for neither.
        priority: Before others of its client.
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
    """Nobody waits for a model; `PrepareFinished` still comes."""

    model: int


@dataclass(frozen=True, slots=True)
class DropModel:
    """Nobody needs a model any more."""

    model: int


@dataclass(frozen=True, slots=True)
class AllocateBuffer:
    """Allocate a buffer; answered by `BufferAllocated`.

    Attributes:
        roles: Model, whether it is an output, index: what it will be used as.
    """

    token: int
    value_type: ValueType
    roles: tuple[tuple[int, bool, int], ...]


@dataclass(frozen=True, slots=True)
class DropBuffer:
    """Nobody needs a buffer any more."""

    token: int


@dataclass(frozen=True, slots=True)
class CopyBuffer:
    """Copy between a buffer and a whole pool; answered by `CopyFinished`.

    Attributes:
        dimensions: Of the value that is copied.
        is_into_buffer: Else out of it.
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
    """Complete a snapshot and write its bytes to the front of a file; answered by `Measured`."""

    query: int
    snapshot: Snapshot
    handle: int


@dataclass(frozen=True, slots=True)
class RunArgument:
    """Where an input or output is; in neither pool nor buffer if it has no value.

    Attributes:
        dimensions: Known for inputs; for outputs as far as they are.
        room_bytes: What a buffer may grow to, if it is an output.
    """

    dimensions: Dimensions
    location: DataLocation | None = None
    pool: Pool | None = None
    token: int = 0
    room_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """Run a model in its turn, which ends with it; answered by `RunFinished`.

    At the deadline at the latest if that can be.
    """

    execution: int
    model: int
    inputs: tuple[RunArgument, ...]
    outputs: tuple[RunArgument, ...]
    deadline_ns: int
    loop_timeout_ns: int


@dataclass(frozen=True, slots=True)
class AwaitTurn:
    """Have an execution wait for its turn, which `TurnCame` tells.

    Attributes:
        priority: Before others of its client.
    """

    execution: int
    connection: int
    model: int
    priority: int


@dataclass(frozen=True, slots=True)
class LeaveTurn:
    """An execution wants no turn any more; one that has come is given back."""

    execution: int


@dataclass(frozen=True, slots=True)
class MayRepeat:
    """When a call comes again on its connection, the rim may run and answer it as it was.

    It need not, and tells nobody. Until `EndRepeats`, and while a turn is free.

    Attributes:
        session: By which `EndRepeats` names it.
    """

    connection: int
    session: int
    call: Call
    run: Run
    reply: Executed


@dataclass(frozen=True, slots=True)
class EndRepeats:
    """No call of a session, or of any if it is 0, is repeated any more, and none runs."""

    connection: int
    session: int


@dataclass(frozen=True, slots=True)
class PauseRepeats:
    """Repeat no call of a connection until `ResumeRepeats`; none runs."""

    connection: int


@dataclass(frozen=True, slots=True)
class ResumeRepeats:
    """Calls of a connection may be repeated again, but for those that have ended since."""

    connection: int


@dataclass(frozen=True, slots=True)
class AttendRing:
    """Calls that may be repeated may come through a file as well, mapped now.

    It is closed afterwards, and with its connection the ring goes by itself. Without it, and in
    any case for all other calls, the client uses its socket.
    """

    connection: int
    handle: int


@dataclass(frozen=True, slots=True)
class StopRun:
    """End a run as soon as it can be, writing no more; `RunFinished` still comes."""

    execution: int


@dataclass(frozen=True, slots=True)
class WatchFence:
    """Say by `FenceChanged` when a fence is signalled or fails."""

    handle: int


@dataclass(frozen=True, slots=True)
class SignalFence:
    """The execution has ended: signal its fence, or turn it to error."""

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
    | AwaitTurn
    | LeaveTurn
    | Run
    | MayRepeat
    | EndRepeats
    | PauseRepeats
    | ResumeRepeats
    | AttendRing
    | StopRun
    | WatchFence
    | SignalFence
)
