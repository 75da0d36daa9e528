"""What a client asks of the driver on the native face.

Numbers that a rule speaks of are plain integers here: a value no rule allows is answered with
INVALID_ARGUMENT, not refused as a malformed message. Files travel beside a message; it refers to
them by their index, and -1 is none.
"""

from dataclasses import dataclass

from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.model import Model, ModelSource
from tightship.driver.types.pools import Image
from tightship.driver.types.request import Request
from tightship.driver.types.status import NO_TIME, ExecutionPreference, Priority

NO_FILE = -1
NO_SLOT = -1
RING_BYTES = 64 + 8 * 1024
"""Of the memory of a ring: a head, and four slots for calls and four for answers."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Ask what the driver offers."""


@dataclass(frozen=True, slots=True)
class RegisterPool:
    """Hand over memory.

    Attributes:
        kind: `ashmem`, `mmap_fd`, `hardware_buffer_blob` or `hardware_buffer`; any other is kept,
            and fails where it is used.
        protection: 1 to read, 2 to write, or both, or neither.
        offset_bytes: Into the file, a multiple of the page size.
        mode: A `PoolMode`, once checked.
        must_map: Map it now, and refuse it if that fails.
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
    """Forget a pool; models, bursts and executions that use it keep it until they end."""

    pool: int


@dataclass(frozen=True, slots=True)
class SupportedOperations:
    """Ask which operations of a model's main subgraph can be run."""

    model: Model


@dataclass(frozen=True, slots=True)
class CacheFiles:
    """Files of the compilation cache.

    Attributes:
        model_files, data_files: Indexes of files; as many as the driver asks for, or none.
        token: 32 bytes that name the model; means nothing without files.
    """

    model_files: tuple[int, ...] = ()
    data_files: tuple[int, ...] = ()
    token: bytes = bytes(32)


@dataclass(frozen=True, slots=True)
class Prepare:
    """Make a model ready to run."""

    source: ModelSource
    preference: int = ExecutionPreference.FAST_SINGLE_ANSWER
    priority: int = Priority.MEDIUM
    deadline_ns: int = NO_TIME
    cache: CacheFiles = CacheFiles()


@dataclass(frozen=True, slots=True)
class PrepareFromCache:
    """Make a model ready that was saved before."""

    cache: CacheFiles
    priority: int = Priority.MEDIUM
    deadline_ns: int = NO_TIME


@dataclass(frozen=True, slots=True)
class ReleaseModel:
    """Forget a model; executions of it that were begun end as they would."""

    model: int


@dataclass(frozen=True, slots=True)
class Role:
    """A use of a buffer: as input or output `io_index` of one of the models of `Allocate`."""

    model_index: int
    io_index: int
    probability: float = 1.0


@dataclass(frozen=True, slots=True)
class Allocate:
    """Ask for a buffer in the driver."""

    dimensions: Dimensions
    models: tuple[int, ...]
    input_roles: tuple[Role, ...]
    output_roles: tuple[Role, ...]


@dataclass(frozen=True, slots=True)
class Free:
    """Give a buffer back; executions that use it keep it until they end."""

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
    """Fill a buffer with what another one of the connection holds; into itself, nothing happens."""

    token: int
    source: int


@dataclass(frozen=True, slots=True)
class DescribeBuffer:
    """Ask for the dimensions of what a buffer holds."""

    token: int


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a model; answered when it has run.

    Attributes:
        deadline_ns: On the clock that counts through suspension (`CLOCK_BOOTTIME`), or -1.
        loop_timeout_ns: For each WHILE loop; -1 is 2 s, more than 15 s is 15 s.
    """

    model: int
    request: Request
    measure_timing: bool = False
    deadline_ns: int = NO_TIME
    loop_timeout_ns: int = NO_TIME


@dataclass(frozen=True, slots=True)
class ExecuteFenced:
    """Run a model once some fences are signalled; answered at once with a fence of its own.

    Attributes:
        wait_for: Indexes of files that are fences.
        duration_ns: From when the last of them is signalled, or -1.
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
    """Ask how a fenced execution went; valid once its fence is signalled."""

    execution: int


@dataclass(frozen=True, slots=True)
class CreateExecution:
    """Check a request once, to run it often with `RunExecution` and `RunExecutionFenced`."""

    model: int
    request: Request
    measure_timing: bool = False
    loop_timeout_ns: int = NO_TIME


@dataclass(frozen=True, slots=True)
class RunExecution:
    """`Execute` what was created."""

    execution: int
    deadline_ns: int = NO_TIME


@dataclass(frozen=True, slots=True)
class RunExecutionFenced:
    """`ExecuteFenced` what was created."""

    execution: int
    wait_for: tuple[int, ...] = ()
    deadline_ns: int = NO_TIME
    duration_ns: int = NO_TIME


@dataclass(frozen=True, slots=True)
class ReleaseExecution:
    """Forget a created or a fenced execution; one that was begun ends as it would."""

    execution: int


@dataclass(frozen=True, slots=True)
class OpenBurst:
    """Begin a row of executions of one model, one at a time, that keeps pools mapped."""

    model: int


@dataclass(frozen=True, slots=True)
class BurstExecute:
    """`Execute` in a burst.

    Attributes:
        slots: For each pool of the request a number that stands for it from now on, or -1.
    """

    burst: int
    request: Request
    slots: tuple[int, ...]
    measure_timing: bool = False
    deadline_ns: int = NO_TIME
    loop_timeout_ns: int = NO_TIME


@dataclass(frozen=True, slots=True)
class ReleaseSlot:
    """Let a burst forget a slot."""

    burst: int
    slot: int


@dataclass(frozen=True, slots=True)
class CloseBurst:
    """End a burst."""

    burst: int


@dataclass(frozen=True, slots=True)
class OpenRing:
    """Have calls of the connection that come again come through memory as well.

    Attributes:
        file: A memfd of `RING_BYTES` that cannot become shorter.
    """

    file: int


@dataclass(frozen=True, slots=True)
class Inspect:
    """Ask who holds which bytes; for the driver's own user, and root.

    Attributes:
        file: Open to write, and written from its beginning, as `snapshot_form` has it.
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
