"""Calls of a client to the driver.

Numbers that a rule restricts are plain integers here, so that an invalid value is answered with
INVALID_ARGUMENT instead of being a malformed message. A message refers to the files beside it by
index; -1 is no file.
"""

from dataclasses import dataclass

from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.model import Model, ModelSource
from tightship.driver.types.pools import Image
from tightship.driver.types.request import Request
from tightship.driver.types.status import NO_TIME, ExecutionPreference, Priority

NO_SLOT = -1
RING_BYTES = 64 + 8 * 1024
"""Size of a ring's memory: a header, four slots for calls and four for replies."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Query the features of the driver."""


@dataclass(frozen=True, slots=True)
class RegisterPool:
    """Register memory as a pool.

    Attributes:
        kind: `ashmem`, `mmap_fd`, `hardware_buffer_blob` or `hardware_buffer`; other kinds are
            registered and fail when used.
        protection: 1 to read, 2 to write, or their sum, or 0.
        offset_bytes: Offset into the file, a multiple of the page size.
        mode: A `PoolMode`; any integer until it is checked.
        must_map: Whether to map now, and to refuse the pool if that fails.
    """

    kind: str
    size_bytes: int
    protection: int
    file: int
    offset_bytes: int = 0
    mode: int = 0
    must_map: bool = False
    image: Image | None = None


@dataclass(frozen=True, slots=True)
class UnregisterPool:
    """Release a pool; models, bursts and executions that use it keep it until they end."""

    pool: int


@dataclass(frozen=True, slots=True)
class SupportedOperations:
    """Query which operations of a model's main subgraph can be run."""

    model: Model


@dataclass(frozen=True, slots=True)
class CacheFiles:
    """Files of the compilation cache.

    Attributes:
        model_files, data_files: Indexes of files; as many as the driver's capabilities say, or
            none.
        token: 32 bytes that identify the model; ignored without files.
    """

    model_files: tuple[int, ...] = ()
    data_files: tuple[int, ...] = ()
    token: bytes = bytes(32)


@dataclass(frozen=True, slots=True)
class Prepare:
    """Prepare a model to run."""

    source: ModelSource
    preference: int = ExecutionPreference.FAST_SINGLE_ANSWER
    priority: int = Priority.MEDIUM
    deadline_ns: int = NO_TIME
    cache: CacheFiles = CacheFiles()


@dataclass(frozen=True, slots=True)
class PrepareFromCache:
    """Prepare a model from a compilation cache."""

    cache: CacheFiles
    priority: int = Priority.MEDIUM
    deadline_ns: int = NO_TIME


@dataclass(frozen=True, slots=True)
class ReleaseModel:
    """Release a model; executions under way complete."""

    model: int


@dataclass(frozen=True, slots=True)
class Role:
    """Use of a buffer as input or output `io_index` of one of the models of `Allocate`."""

    model_index: int
    io_index: int
    probability: float = 1.0


@dataclass(frozen=True, slots=True)
class Allocate:
    """Allocate a buffer in the driver."""

    dimensions: Dimensions
    models: tuple[int, ...]
    input_roles: tuple[Role, ...]
    output_roles: tuple[Role, ...]


@dataclass(frozen=True, slots=True)
class Free:
    """Release a buffer; executions that use it keep it until they end."""

    token: int


@dataclass(frozen=True, slots=True)
class CopyFrom:
    """Fill a buffer from a pool of exactly its size."""

    token: int
    pool: int
    dimensions: Dimensions = ()


@dataclass(frozen=True, slots=True)
class CopyTo:
    """Write a buffer to a pool of exactly its size."""

    token: int
    pool: int


@dataclass(frozen=True, slots=True)
class CopyBetween:
    """Copy the contents of another buffer of the connection; onto itself a no-op."""

    token: int
    source: int


@dataclass(frozen=True, slots=True)
class DescribeBuffer:
    """Query the dimensions of a buffer's contents."""

    token: int


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a model; answered when the run has ended.

    Attributes:
        deadline_ns: Time of `CLOCK_BOOTTIME`, which counts through suspension; -1 for no deadline.
        loop_timeout_ns: Limit for each WHILE loop; -1 for 2 s, at most 15 s.
    """

    model: int
    request: Request
    measure_timing: bool = False
    deadline_ns: int = NO_TIME
    loop_timeout_ns: int = NO_TIME


@dataclass(frozen=True, slots=True)
class ExecuteFenced:
    """Run a model once its fences are signalled; answered at once with a fence for the result.

    Attributes:
        wait_for: Indexes of files that are fences.
        duration_ns: Time limit from when the last fence is signalled; -1 for none.
    """

    model: int
    request: Request
    wait_for: tuple[int, ...] = ()
    measure_timing: bool = False
    deadline_ns: int = NO_TIME
    loop_timeout_ns: int = NO_TIME
    duration_ns: int = NO_TIME


@dataclass(frozen=True, slots=True)
class GetExecutionInfo:
    """Query the result of a fenced execution whose fence is signalled."""

    execution: int


@dataclass(frozen=True, slots=True)
class CreateExecution:
    """Check a request once, for repeated use by `RunExecution` and `RunExecutionFenced`."""

    model: int
    request: Request
    measure_timing: bool = False
    loop_timeout_ns: int = NO_TIME


@dataclass(frozen=True, slots=True)
class RunExecution:
    """Run a created execution as `Execute` does."""

    execution: int
    deadline_ns: int = NO_TIME


@dataclass(frozen=True, slots=True)
class RunExecutionFenced:
    """Run a created execution as `ExecuteFenced` does."""

    execution: int
    wait_for: tuple[int, ...] = ()
    deadline_ns: int = NO_TIME
    duration_ns: int = NO_TIME


@dataclass(frozen=True, slots=True)
class ReleaseExecution:
    """Release a created or fenced execution; a run under way completes."""

    execution: int


@dataclass(frozen=True, slots=True)
class OpenBurst:
    """Begin executions of one model, one at a time, between which pools stay mapped."""

    model: int


@dataclass(frozen=True, slots=True)
class BurstExecute:
    """Run a model as `Execute` does, in a burst.

    Attributes:
        slots: Number by which the burst caches each pool of the request, or -1.
    """

    burst: int
    request: Request
    slots: tuple[int, ...]
    measure_timing: bool = False
    deadline_ns: int = NO_TIME
    loop_timeout_ns: int = NO_TIME


@dataclass(frozen=True, slots=True)
class ReleaseSlot:
    """Release a slot of a burst."""

    burst: int
    slot: int


@dataclass(frozen=True, slots=True)
class CloseBurst:
    """End a burst."""

    burst: int


@dataclass(frozen=True, slots=True)
class OpenRing:
    """Offer memory through which repeated calls of the connection may travel as well.

    Attributes:
        file: Memfd of `RING_BYTES`, sealed against shrinking.
    """

    file: int


@dataclass(frozen=True, slots=True)
class Inspect:
    """Request a snapshot of all holdings; allowed to the driver's own user and root.

    Attributes:
        file: File open for writing; receives the snapshot in the encoding of `snapshot_form`.
    """

    file: int


Call = (
    Capabilities
    | RegisterPool
    | UnregisterPool
    | SupportedOperations
    | Prepare
    | PrepareFromCache
    | ReleaseModel
    | Allocate
    | Free
    | CopyFrom
    | CopyTo
    | CopyBetween
    | DescribeBuffer
    | Execute
    | ExecuteFenced
    | GetExecutionInfo
    | CreateExecution
    | RunExecution
    | RunExecutionFenced
    | ReleaseExecution
    | OpenBurst
    | BurstExecute
    | ReleaseSlot
    | CloseBurst
    | OpenRing
    | Inspect
)
