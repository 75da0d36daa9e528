"""A model as NNAPI describes it: operands, operations, subgraphs, constants."""

import enum
from dataclasses import dataclass

from tightship.driver.types.operand_type import ValueType


class Lifetime(enum.IntEnum):
    """Where the value of an operand comes from."""

    TEMPORARY_VARIABLE = 0
    SUBGRAPH_INPUT = 1
    SUBGRAPH_OUTPUT = 2
    CONSTANT_COPY = 3
    CONSTANT_REFERENCE = 4
    NO_VALUE = 5
    SUBGRAPH = 6


@dataclass(frozen=True, slots=True)
class DataLocation:
    """Bytes `[offset, offset + length)` of a pool, and bytes after them that may be touched.

    Attributes:
        pool_index: In the pools of the model or the request that has this location.
    """

    pool_index: int = 0
    offset_bytes: int = 0
    length_bytes: int = 0
    padding_bytes: int = 0


NOWHERE = DataLocation()
"""The location of what has none: all fields are 0."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A value of a subgraph.

    Attributes:
        lifetime: A `Lifetime`, once checked.
        location: Of a constant; of a subgraph, its offset is an index in `Model.referenced`.
    """

    value_type: ValueType
    lifetime: int
    location: DataLocation = NOWHERE


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on operands of its subgraph, by their indexes."""

    operation_type: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Operations in the order they are executed in."""

    operands: tuple[Operand, ...]
    operations: tuple[Operation, ...]
    input_indexes: tuple[int, ...]
    output_indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """A whole model.

    Attributes:
        operand_values: The constants that are copied, one after another.
        pools: Identifiers of registered pools that hold the constants that are not.
        is_relaxed: Whether float32 may be computed as float16.
    """

    main: Subgraph
    referenced: tuple[Subgraph, ...] = ()
    operand_values: bytes = b""
    pools: tuple[int, ...] = ()
    is_relaxed: bool = False


class FileFormat(enum.IntEnum):
    """What the bytes of a `ModelFile` are."""

    OPERANDS = 0  # a `Model`, too large for a message
    ONNX = 1
    PREPARED = 2


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """A file that an ONNX model names, as a pool."""

    name: str
    pool: int


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model in a registered pool; messages about its bytes call it by that.

    Attributes:
        file_format: A `FileFormat`, once checked.
    """

    file_format: int
    pool: int
    offset_bytes: int
    length_bytes: int
    externals: tuple[ExternalFile, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedFile(ModelFile):
    """The same, with what messages about its bytes call it."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model that the driver was started with."""

    name: str


ModelSource = Model | ModelFile | NamedFile | ModelName
