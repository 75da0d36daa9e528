"""What the driver answers on the native face."""

from dataclasses import dataclass

from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.status import NO_TIME, ErrorStatus


@dataclass(frozen=True, slots=True)
class Done:
    """The call ended with NONE and has nothing to say."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The call ended with another status.

    Attributes:
        status: Never NONE.
        message: For people; names nothing of another client.
    """

    status: ErrorStatus
    message: str


@dataclass(frozen=True, slots=True)
class DriverCapabilities:
    """What the driver offers.

    Attributes:
        feature_level: Of this protocol.
        features: Names of the optional features it has.
        model_cache_files, data_cache_files: How many files a cache takes; both 0 if there is none.
    """

    feature_level: int
    features: tuple[str, ...]
    model_cache_files: int
    data_cache_files: int


@dataclass(frozen=True, slots=True)
class PoolRegistered:
    """The pool's identifier, valid on this connection."""

    pool: int


@dataclass(frozen=True, slots=True)
class Supported:
    """Whether each operation can be run."""

    operations: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class ModelPrepared:
    """The model's identifier, and what it takes and gives."""

    model: int
    inputs: tuple[ValueType, ...]
    outputs: tuple[ValueType, ...]


@dataclass(frozen=True, slots=True)
class Allocated:
    """The buffer's token: positive, valid on this connection, never given twice."""

    token: int


@dataclass(frozen=True, slots=True)
class OutputShape:
    """The dimensions of an output, and whether it fitted where it was to go."""

    dimensions: Dimensions
    is_sufficient: bool = True


@dataclass(frozen=True, slots=True)
class Timing:
    """Nanoseconds; -1 where it was not measured."""

    on_device_ns: int = NO_TIME
    in_driver_ns: int = NO_TIME


UNTIMED = Timing()


@dataclass(frozen=True, slots=True)
class Executed:
    """An execution ended with NONE or OUTPUT_INSUFFICIENT_SIZE; has a shape for each output."""

    status: ErrorStatus
    shapes: tuple[OutputShape, ...]
    timing: Timing = UNTIMED


@dataclass(frozen=True, slots=True)
class Launched:
    """A fenced execution was accepted; its fence is the file beside this message."""

    execution: int


@dataclass(frozen=True, slots=True)
class ExecutionInfo:
    """A fenced execution has ended, with this status."""

    status: ErrorStatus
    timing_launched: Timing
    timing_fenced: Timing


@dataclass(frozen=True, slots=True)
class ExecutionCreated:
    """The identifier of a reusable execution."""

    execution: int


@dataclass(frozen=True, slots=True)
class BurstOpened:
    """The identifier of a burst."""

    burst: int


@dataclass(frozen=True, slots=True)
class Inspected:
    """The snapshot was written."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class BufferDescribed:
    """The dimensions of what a buffer holds, all of them known."""

    dimensions: Dimensions


Reply = (
    Done
    | Failed
    | DriverCapabilities
    | PoolRegistered
    | Supported
    | ModelPrepared
    | Allocated
    | Executed
    | Launched
    | ExecutionInfo
    | ExecutionCreated
    | BurstOpened
    | Inspected
    | BufferDescribed
)
