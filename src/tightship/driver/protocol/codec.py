"""Encoding of messages.

    byte  0   version of the protocol
          1   kind of the message
          2   number of files beside it, u16
          4   bytes of the body, u32
          8   number of the call, u64; its reply repeats it
         16   body: the fields of the message in the forms of `wire`

Any bytes are a valid message or a `FormatError`; a message has one encoding. Within a version the
fields of a message never change: an addition is a new kind, which a client sends only where
`Capabilities` names its feature.
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
"""Most file descriptors that the kernel passes beside one message."""
TEXT_BYTES_MAX = 1024
FEATURES_MAX = 64

_HEADER = struct.Struct("<BBHIQ")
HEADER_BYTES = _HEADER.size

_RECENT = 256
_RECENT_BYTES = 1024
"""Size up to which decoded calls are cached, `_RECENT` of them."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Frame(Generic[T]):
    """Message with the number of its call and the number of files beside it."""

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
    """Encode a message.

    Args:
        message: Call or reply.
        number: Number of the call; below 2**64.
        file_count: Number of files that travel beside it.

    Raises:
        DriverError: INVALID_ARGUMENT: a number does not fit its field.
        FormatError: A sequence, a text or the message is too long.
    """
    tag = _TAGS[type(message)]
    out = bytearray(HEADER_BYTES)
    (_CALL_FORMS[tag] if tag in _CALL_FORMS else _REPLY_FORMS[tag]).write(message, out)
    if len(out) > MESSAGE_BYTES_MAX:
        raise FormatError(
            f"A `{type(message).__name__}` takes {len(out)} bytes; a message has at most "
            f"{MESSAGE_BYTES_MAX}. Pass a large model in a pool, as a `ModelFile`."
        )
    _HEADER.pack_into(out, 0, VERSION, tag, file_count, len(out) - HEADER_BYTES, number)
    return bytes(out)


def encode_reply(reply: Reply, number: int, size_bytes_max: int = MESSAGE_BYTES_MAX) -> bytes:
    """Encode a reply; one that is too long becomes GENERAL_FAILURE without shapes or timing.

    The text of a failure is truncated to fit.
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
    """Decode a call; equal small calls may be the same object.

    Raises:
        FormatError: The bytes are not a valid call.
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
    """Decode a reply.

    Raises:
        FormatError: The bytes are not a valid reply.
    """
    tag, file_count, number = _header(data, _REPLY_FORMS)
    return Frame(_whole(Reader(data[HEADER_BYTES:]), _REPLY_FORMS[tag]), number, file_count)


def number_of(data: bytes) -> int:
    """Return the number in the header, to answer a malformed call; 0 if the header is cut short."""
    return int(_HEADER.unpack_from(data)[4]) if len(data) >= HEADER_BYTES else 0


def encode_model(model: Model) -> bytes:
    """Encode a model as a `ModelFile` of format OPERANDS.

    Raises:
        FormatError: A sequence or a text is too long.
    """
    out = bytearray()
    MODEL.write(model, out)
    return bytes(out)


def decode_model(data: bytes) -> Model:
    """Decode what `encode_model` wrote.

    Raises:
        FormatError: The bytes are not a valid model, or too many for one without its weights.
    """
    if len(data) > MODEL_BYTES_MAX:
        raise FormatError(
            f"A model has {len(data)} bytes, more than {MODEL_BYTES_MAX}. Put its constants "
            "into a pool."
        )
    return _whole(Reader(data), MODEL)


def _header(data: bytes, forms: Mapping[int, Form[Any]]) -> tuple[int, int, int]:
    """Return the kind of a message, the number of its files and of its call."""
    if not HEADER_BYTES <= len(data) <= MESSAGE_BYTES_MAX:
        raise FormatError(
            f"A message has {len(data)} bytes, not {HEADER_BYTES} to {MESSAGE_BYTES_MAX}."
        )
    version, tag, file_count, body_bytes, number = _HEADER.unpack_from(data)
    if version != VERSION:
        raise FormatError(f"A message has version {version}, not {VERSION}.")
    if body_bytes != len(data) - HEADER_BYTES:
        raise FormatError(
            f"A message says that its body has {body_bytes} bytes; {len(data) - HEADER_BYTES} came."
        )
    if tag not in forms:
        raise FormatError(f"A message has the unknown kind {tag}.")
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
