"""Messages as bytes.

    byte  0   version of the protocol
          1   which message
          2   files beside it, u16
          4   bytes of the body, u32
          8   number of the call, u64; its answer has the same
         16   the body: the fields of the message, as `wire` writes them

Any bytes are a valid message or a `FormatError`; a message has one encoding. While the version
stays, the fields of a message do: what is new is a kind of its own, which a client sends where
`Capabilities` names the feature.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from tightship.driver.protocol import messages, replies
from tightship.driver.protocol.forms import (
    ARGUMENTS_MAX,
    DIMENSIONS,
    IDENTIFIERS,
    INDEXES_MAX,
    MODEL,
    MODEL_BYTES_MAX,
    MODEL_SOURCE,
    NAME,
    REQUEST,
    VALUE_TYPE,
)
from tightship.driver.protocol.messages import CacheFiles, Call, Role
from tightship.driver.protocol.replies import Failed, OutputShape, Reply, Timing
from tightship.driver.protocol.wire import (
    F64,
    I32,
    I64,
    U8,
    U32,
    Form,
    Reader,
    flag,
    integers,
    optional,
    record,
    row,
    text,
)
from tightship.driver.types.model import Model
from tightship.driver.types.pools import Image
from tightship.driver.types.status import CACHE_TOKEN_BYTES, ErrorStatus
from tightship.errors import DriverError, FormatError

VERSION = 1
MESSAGE_BYTES_MAX = 65_536
FILES_MAX = 253
"""The kernel passes no more file descriptors beside one message."""
TEXT_BYTES_MAX = 1024
FEATURES_MAX = 64

_HEADER = struct.Struct("<BBHIQ")
HEADER_BYTES = _HEADER.size

_RECENT = 256
_RECENT_BYTES = 1024
"""Calls up to this size are read once while they are among the last."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Frame(Generic[T]):
    """A message with its number and how many files travel beside it."""

    message: T
    number: int
    file_count: int = 0


def _token() -> Form[bytes]:
    def write(value: bytes, out: bytearray) -> None:
        if len(value) != CACHE_TOKEN_BYTES:
            raise FormatError(f"A cache token has {len(value)} bytes, not {CACHE_TOKEN_BYTES}.")
        out += value

    return Form(write, lambda reader: reader.take(CACHE_TOKEN_BYTES))


def _status() -> Form[ErrorStatus]:
    def read(reader: Reader) -> ErrorStatus:
        value = U8.read(reader)
        if value > max(ErrorStatus):
            raise FormatError(f"A status is {value}; statuses are 0 to {max(ErrorStatus)}.")
        return ErrorStatus(value)

    return Form(U8.write, read)


_FILES = integers("i", FILES_MAX)
_CACHE = record(CacheFiles, model_files=_FILES, data_files=_FILES, token=_token())
_IMAGE = record(Image, width=I64, height=I64, layers=I64, row_stride_bytes=I64, pixel_format=I32)
_ROLES = row(record(Role, model_index=I64, io_index=I64, probability=F64), ARGUMENTS_MAX)
_TIMING = record(Timing, on_device_ns=I64, in_driver_ns=I64)
_SHAPE = record(OutputShape, dimensions=DIMENSIONS, is_sufficient=flag())
_TYPES = row(VALUE_TYPE, ARGUMENTS_MAX)

_CALLS: Mapping[int, tuple[type, Mapping[str, Form[Any]]]] = {
    0: (messages.Capabilities, {}),
    1: (
        messages.RegisterPool,
        {
            "kind": NAME,
            "size_bytes": I64,
            "protection": I32,
            "file": I32,
            "offset_bytes": I64,
            "mode": I32,
            "must_map": flag(),
            "image": optional(_IMAGE),
        },
    ),
    2: (messages.UnregisterPool, {"pool": I64}),
    3: (messages.SupportedOperations, {"model": MODEL}),
    4: (
        messages.Prepare,
        {
            "source": MODEL_SOURCE,
            "preference": I32,
            "priority": I32,
            "deadline_ns": I64,
            "cache": _CACHE,
        },
    ),
    5: (messages.PrepareFromCache, {"cache": _CACHE, "priority": I32, "deadline_ns": I64}),
    6: (messages.ReleaseModel, {"model": I64}),
    7: (
        messages.Allocate,
        {
            "dimensions": DIMENSIONS,
            "models": IDENTIFIERS,
            "input_roles": _ROLES,
            "output_roles": _ROLES,
        },
    ),
    8: (messages.Free, {"token": I64}),
    9: (messages.CopyFrom, {"token": I64, "pool": I64, "dimensions": DIMENSIONS}),
    10: (messages.CopyTo, {"token": I64, "pool": I64}),
    11: (
        messages.Execute,
        {
            "model": I64,
            "request": REQUEST,
            "measure_timing": flag(),
            "deadline_ns": I64,
            "loop_timeout_ns": I64,
        },
    ),
    12: (
        messages.ExecuteFenced,
        {
            "model": I64,
            "request": REQUEST,
            "wait_for": _FILES,
            "measure_timing": flag(),
            "deadline_ns": I64,
            "loop_timeout_ns": I64,
            "duration_ns": I64,
        },
    ),
    13: (messages.GetExecutionInfo, {"execution": I64}),
    14: (
        messages.CreateExecution,
        {"model": I64, "request": REQUEST, "measure_timing": flag(), "loop_timeout_ns": I64},
    ),
    15: (messages.RunExecution, {"execution": I64, "deadline_ns": I64}),
    16: (
        messages.RunExecutionFenced,
        {"execution": I64, "wait_for": _FILES, "deadline_ns": I64, "duration_ns": I64},
    ),
    17: (messages.ReleaseExecution, {"execution": I64}),
    18: (messages.OpenBurst, {"model": I64}),
    19: (
        messages.BurstExecute,
        {
            "burst": I64,
            "request": REQUEST,
            "slots": IDENTIFIERS,
            "measure_timing": flag(),
            "deadline_ns": I64,
            "loop_timeout_ns": I64,
        },
    ),
    20: (messages.ReleaseSlot, {"burst": I64, "slot": I64}),
    21: (messages.CloseBurst, {"burst": I64}),
    22: (messages.Inspect, {"file": I32}),
    23: (messages.OpenRing, {"file": I32}),
    24: (messages.CopyBetween, {"token": I64, "source": I64}),
    25: (messages.DescribeBuffer, {"token": I64}),
}

_REPLIES: Mapping[int, tuple[type, Mapping[str, Form[Any]]]] = {
    128: (replies.Done, {}),
    129: (replies.Failed, {"status": _status(), "message": text(TEXT_BYTES_MAX)}),
    130: (
        replies.DriverCapabilities,
        {
            "feature_level": U32,
            "features": row(NAME, FEATURES_MAX),
            "model_cache_files": U32,
            "data_cache_files": U32,
        },
    ),
    131: (replies.PoolRegistered, {"pool": I64}),
    132: (replies.Supported, {"operations": row(flag(), INDEXES_MAX)}),
    133: (replies.ModelPrepared, {"model": I64, "inputs": _TYPES, "outputs": _TYPES}),
    134: (replies.Allocated, {"token": I64}),
    135: (
        replies.Executed,
        {"status": _status(), "shapes": row(_SHAPE, ARGUMENTS_MAX), "timing": _TIMING},
    ),
    136: (replies.Launched, {"execution": I64}),
    137: (
        replies.ExecutionInfo,
        {"status": _status(), "timing_launched": _TIMING, "timing_fenced": _TIMING},
    ),
    138: (replies.ExecutionCreated, {"execution": I64}),
    139: (replies.BurstOpened, {"burst": I64}),
    140: (replies.Inspected, {"size_bytes": I64}),
    141: (replies.BufferDescribed, {"dimensions": DIMENSIONS}),
}

_CALL_FORMS: Mapping[int, Form[Any]] = {
    tag: record(kind, **forms) for tag, (kind, forms) in _CALLS.items()
}
_REPLY_FORMS: Mapping[int, Form[Any]] = {
    tag: record(kind, **forms) for tag, (kind, forms) in _REPLIES.items()
}
_TAGS = {kind: tag for table in (_CALLS, _REPLIES) for tag, (kind, _) in table.items()}


def encode(message: Call | Reply, number: int, file_count: int = 0) -> bytes:
    """A message as bytes.

    Args:
        message: Any.
        number: Of the call; below 2**64.
        file_count: Files that travel beside it.

    Raises:
        DriverError: INVALID_ARGUMENT: a number is too large for its place.
        FormatError: A row or a text is, or the whole for a message.
    """
    tag = _TAGS[type(message)]
    out = bytearray(HEADER_BYTES)
    (_CALL_FORMS[tag] if tag in _CALL_FORMS else _REPLY_FORMS[tag]).write(message, out)
    if len(out) > MESSAGE_BYTES_MAX:
        raise FormatError(
            f"A `{type(message).__name__}` takes {len(out)} bytes; a message has at most "
            f"{MESSAGE_BYTES_MAX}. Hand a large model over in a pool, as a `ModelFile`."
        )
    _HEADER.pack_into(out, 0, VERSION, tag, file_count, len(out) - HEADER_BYTES, number)
    return bytes(out)


def encode_reply(reply: Reply, number: int, size_bytes_max: int = MESSAGE_BYTES_MAX) -> bytes:
    """An answer as bytes, or GENERAL_FAILURE without shapes or timing if it takes too many.

    A long message of a failure is cut.
    """
    if isinstance(reply, Failed):
        begin = reply.message.encode()[:TEXT_BYTES_MAX].decode(errors="ignore")
        reply = Failed(reply.status, begin)
    try:
        data = encode(reply, number, 1 if isinstance(reply, replies.Launched) else 0)
    except (DriverError, FormatError):
        data = b""
    if data and len(data) <= size_bytes_max:
        return data
    return encode(Failed(ErrorStatus.GENERAL_FAILURE, "The answer is too long."), number)


def decode_call(data: bytes) -> Frame[Call]:
    """The call that bytes are; one that comes again may be the same object.

    Raises:
        FormatError: They are none.
    """
    tag, file_count, number = _header(data, _CALL_FORMS)
    body = data[HEADER_BYTES:]
    read = _recent_call if len(body) <= _RECENT_BYTES else _recent_call.__wrapped__
    return Frame(read(tag, body), number, file_count)


@lru_cache(_RECENT)
def _recent_call(tag: int, body: bytes) -> Call:
    call: Call = _whole(Reader(body), _CALL_FORMS[tag])
    return call


def decode_reply(data: bytes) -> Frame[Reply]:
    """The answer that bytes are.

    Raises:
        FormatError: They are none.
    """
    tag, file_count, number = _header(data, _REPLY_FORMS)
    return Frame(_whole(Reader(data[HEADER_BYTES:]), _REPLY_FORMS[tag]), number, file_count)


def number_of(data: bytes) -> int:
    """The number that bytes claim to have, for an answer to a malformed call; 0 if too short."""
    return int(_HEADER.unpack_from(data)[4]) if len(data) >= HEADER_BYTES else 0


def encode_model(model: Model) -> bytes:
    """A model as the bytes of a `ModelFile` of format OPERANDS.

    Raises:
        FormatError: It cannot be written.
    """
    out = bytearray()
    MODEL.write(model, out)
    return bytes(out)


def decode_model(data: bytes) -> Model:
    """The model that `encode_model` wrote.

    Raises:
        FormatError: The bytes are no model, or more than a model has without its weights.
    """
    if len(data) > MODEL_BYTES_MAX:
        raise FormatError(
            f"A model has {len(data)} bytes; it may have {MODEL_BYTES_MAX}. Put its constants "
            "into a pool."
        )
    return _whole(Reader(data), MODEL)


def _header(data: bytes, forms: Mapping[int, Form[Any]]) -> tuple[int, int, int]:
    """Which message it is, how many files it has, and its number."""
    if not HEADER_BYTES <= len(data) <= MESSAGE_BYTES_MAX:
        raise FormatError(
            f"A message has {len(data)} bytes, not {HEADER_BYTES} to {MESSAGE_BYTES_MAX}."
        )
    version, tag, file_count, body_bytes, number = _HEADER.unpack_from(data)
    if version != VERSION:
        raise FormatError(f"A message is of version {version}; this is version {VERSION}.")
    if body_bytes != len(data) - HEADER_BYTES:
        raise FormatError(
            f"A message says that its body has {body_bytes} bytes; {len(data) - HEADER_BYTES} came."
        )
    if tag not in forms:
        raise FormatError(f"A message is of kind {tag}, which is not known here.")
    if file_count > FILES_MAX:
        raise FormatError(f"A message has {file_count} files; at most {FILES_MAX} can come.")
    return tag, file_count, number


def _whole(reader: Reader, form: Form[T]) -> T:
    value = form.read(reader)
    if reader.position != len(reader.data):
        raise FormatError(
            f"{len(reader.data) - reader.position} bytes are left after the last field."
        )
    return value
