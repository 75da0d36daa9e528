"""Forms of the parts of messages: models, requests, types."""

from collections.abc import Mapping
from typing import Any

from tightship.driver.protocol.wire import (
    F64,
    I32,
    I64,
    Form,
    flag,
    integers,
    octets,
    one_of,
    record,
    remembered,
    row,
    text,
)
from tightship.driver.types.model import (
    DataLocation,
    ExternalFile,
    Model,
    ModelFile,
    ModelName,
    NamedFile,
    Operand,
    Operation,
    Subgraph,
)
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.request import Request, RequestArgument, RequestPool

RANK_MAX = 64
POOLS_MAX = 4096
ARGUMENTS_MAX = 4096
NAME_BYTES_MAX = 255
MODEL_BYTES_MAX = 1 << 22
INDEXES_MAX = 1 << 20

DIMENSIONS = integers("q", RANK_MAX)
INDEXES = integers("i", INDEXES_MAX)
IDENTIFIERS = integers("q", POOLS_MAX)
NAME = text(NAME_BYTES_MAX)

VALUE_TYPE: Form[ValueType] = record(
    ValueType,
    operand_type=I32,
    dimensions=DIMENSIONS,
    scale=F64,
    zero_point=I32,
    extra_params=octets(MODEL_BYTES_MAX),
)
LOCATION: Form[DataLocation] = record(
    DataLocation, pool_index=I64, offset_bytes=I64, length_bytes=I64, padding_bytes=I64
)
OPERAND: Form[Operand] = record(Operand, value_type=VALUE_TYPE, lifetime=I32, location=LOCATION)
OPERATION: Form[Operation] = record(Operation, operation_type=I32, inputs=INDEXES, outputs=INDEXES)
SUBGRAPH: Form[Subgraph] = record(
    Subgraph,
    operands=row(OPERAND, INDEXES_MAX),
    operations=row(OPERATION, INDEXES_MAX),
    input_indexes=INDEXES,
    output_indexes=INDEXES,
)
MODEL: Form[Model] = record(
    Model,
    main=SUBGRAPH,
    referenced=row(SUBGRAPH, POOLS_MAX),
    operand_values=octets(MODEL_BYTES_MAX),
    pools=IDENTIFIERS,
    is_relaxed=flag(),
)
EXTERNAL_FILE: Form[ExternalFile] = record(ExternalFile, name=NAME, pool=I64)
_FILE: Mapping[str, Form[Any]] = {
    "file_format": I32,
    "pool": I64,
    "offset_bytes": I64,
    "length_bytes": I64,
    "externals": row(EXTERNAL_FILE, POOLS_MAX),
}
MODEL_SOURCE = one_of(
    {
        0: (Model, MODEL),
        1: (ModelFile, record(ModelFile, **_FILE)),
        2: (ModelName, record(ModelName, name=NAME)),
        3: (NamedFile, record(NamedFile, **_FILE, name=NAME)),
    }
)
ARGUMENT: Form[RequestArgument] = record(
    RequestArgument, location=LOCATION, dimensions=DIMENSIONS, has_no_value=flag()
)
REQUEST: Form[Request] = remembered(
    record(
        Request,
        inputs=row(ARGUMENT, ARGUMENTS_MAX),
        outputs=row(ARGUMENT, ARGUMENTS_MAX),
        pools=row(record(RequestPool, identifier=I64, is_token=flag()), POOLS_MAX),
    ),
    size_bytes_max=1024,
    entries=256,
)
