"""Replies of the driver to calls."""

from dataclasses import dataclass

from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.status import NO_TIME, ErrorStatus


@dataclass(frozen=True, slots=True)
class Done:
    """Success without a result."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Failure of a call.

    Attributes:
        status: Any status but NONE.
        message: Explanation for a reader; reveals nothing of other clients.
    """

    status: ErrorStatus
    message: str


@dataclass(frozen=True, slots=True)
class DriverCapabilities:
    """Features of the driver.

    Attributes:
        feature_level: Level of this protocol.
        features: Names of its optional features.
        model_cache_files, data_cache_files: Files that a compilation cache takes; both 0 for no
            caching.
    """

    feature_level: int
    features: tuple[str, ...]
    model_cache_files: int
    data_cache_files: int


@dataclass(frozen=True, slots=True)
class PoolRegistered:
    """Identifier of a pool, valid on this connection."""

    pool: int


@dataclass(frozen=True, slots=True)
class Supported:
    """Flags of the operations that can be run, in the model's order."""

    operations: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class ModelPrepared:
    """Identifier of a model, and the types of its inputs and outputs."""

    model: int
    inputs: tuple[ValueType, ...]
    outputs: tuple[ValueType, ...]


@dataclass(frozen=True, slots=True)
class Allocated:
    """Token of a buffer: positive, valid on this connection, never reused."""

    token: int


@dataclass(frozen=True, slots=True)
class OutputShape:
    """Dimensions of an output, and whether the memory for it was large enough."""

    dimensions: Dimensions
    is_sufficient: bool = True


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations in nanoseconds; -1 if not measured."""

    on_device_ns: int = NO_TIME
    in_driver_ns: int = NO_TIME


UNTIMED = Timing()


@dataclass(frozen=True, slots=True)
class Executed:
    """End of an execution with NONE or OUTPUT_INSUFFICIENT_SIZE, and a shape for each output."""

    status: ErrorStatus
    shapes: tuple[OutputShape, ...]
    timing: Timing = UNTIMED


@dataclass(frozen=True, slots=True)
class Launched:
    """Acceptance of a fenced execution; the file beside this message is its fence."""

    execution: int


@dataclass(frozen=True, slots=True)
class ExecutionInfo:
    """Result of a fenced execution that has ended."""

    status: ErrorStatus
    timing_launched: Timing
    timing_fenced: Timing


@dataclass(frozen=True, slots=True)
class ExecutionCreated:
    """Identifier of a reusable execution."""

    execution: int


@dataclass(frozen=True, slots=True)
class BurstOpened:
    """Identifier of a burst."""

    burst: int


@dataclass(frozen=True, slots=True)
class Inspected:
    """Size of the snapshot that was written."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class BufferDescribed:
    """Dimensions of a buffer's contents, all of them known."""

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
