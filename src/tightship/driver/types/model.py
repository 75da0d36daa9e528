"""Operands, operations, subgraphs and constants of a model, as NNAPI describes it."""

import enum
from dataclasses import dataclass

from tightship.driver.types.operand_type import ValueType


class Lifetime(enum.IntEnum):
    """Sources of an operand's value."""

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
        pool_index: Index in the pools of the model or the request that has this location.
    """

    pool_index: int = 0
    offset_bytes: int = 0
    length_bytes: int = 0
    padding_bytes: int = 0


NOWHERE = DataLocation()
"""Location of an argument or operand that has none: all fields are 0."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A value of a subgraph.

    Attributes:
        lifetime: A `Lifetime`; any integer until `check_model` has seen it.
        location: Bytes of a constant. For a subgraph, the offset is an index in `Model.referenced`.
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
    """Operands, and operations in the order of their execution."""

    operands: tuple[Operand, ...]
    operations: tuple[Operation, ...]
    input_indexes: tuple[int, ...]
    output_indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """Main subgraph, and the subgraphs and constants that it refers to.

    Attributes:
        operand_values: Bytes of the copied constants, one after another.
        pools: Identifiers of the registered pools with all other constants.
        is_relaxed: Whether float32 may be computed as float16.
    """

    main: Subgraph
    referenced: tuple[Subgraph, ...] = ()
    operand_values: bytes = b""
    pools: tuple[int, ...] = ()
    is_relaxed: bool = False


class FileFormat(enum.IntEnum):
    """Formats of the bytes of a `ModelFile`."""

    OPERANDS = 0  # an encoded `Model` that is too large for a message
    ONNX = 1
    PREPARED = 2


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """Pool that stands for a file of external data which an ONNX model names."""

    name: str
    pool: int


@dataclass(frozen=True, slots=True)
class ModelFile:
    """Model whose bytes are in a registered pool.

    Attributes:
        file_format: A `FileFormat`; any integer until it is checked.
    """

    file_format: int
    pool: int
    offset_bytes: int
    length_bytes: int
    externals: tuple[ExternalFile, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedFile(ModelFile):
    """Model in a registered pool, with the name that errors about its bytes show."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class ModelName:
    """Name of a model that the driver was started with."""

    name: str


ModelSource = Model | ModelFile | NamedFile | ModelName
