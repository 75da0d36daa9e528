"""Forms of the parts of messages: models, requests, types."""

from collections.abc import Mapping
from typing import Any

from tightship.driver.protocol.wire import (
    FORMS,
    I32,
    Form,
    integers,
    octets,
    one_of,
    record,
    remembered,
    row,
    text,
)
from tightship.driver.types.dimensions import Dimensions
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

FORMS[Dimensions] = DIMENSIONS
FORMS[str] = NAME

VALUE_TYPE = record(
    ValueType, operand_type=I32, zero_point=I32, extra_params=octets(MODEL_BYTES_MAX)
)
LOCATION = record(DataLocation)
OPERAND = record(Operand, lifetime=I32)
OPERATION = record(Operation, operation_type=I32, inputs=INDEXES, outputs=INDEXES)
SUBGRAPH = record(
    Subgraph,
    operands=row(OPERAND, INDEXES_MAX),
    operations=row(OPERATION, INDEXES_MAX),
    input_indexes=INDEXES,
    output_indexes=INDEXES,
)
MODEL = record(
    Model,
    referenced=row(SUBGRAPH, POOLS_MAX),
    operand_values=octets(MODEL_BYTES_MAX),
    pools=IDENTIFIERS,
)
_FILE: Mapping[str, Form[Any]] = {
    "file_format": I32,
    "externals": row(record(ExternalFile), POOLS_MAX),
}
MODEL_SOURCE = one_of(
    {
        0: (Model, MODEL),
        1: (ModelFile, record(ModelFile, **_FILE)),
        2: (ModelName, record(ModelName)),
        3: (NamedFile, record(NamedFile, **_FILE)),
    }
)
ARGUMENTS = row(record(RequestArgument), ARGUMENTS_MAX)
REQUEST: Form[Request] = remembered(
    record(
        Request,
        inputs=ARGUMENTS,
        outputs=ARGUMENTS,
        pools=row(record(RequestPool), POOLS_MAX),
    ),
    size_bytes_max=1024,
    entries=256,
)
FORMS[Request] = REQUEST
