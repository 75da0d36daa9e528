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
from typing import Any, Generic, TypeVar, get_args

from tightship.driver.protocol import messages, replies
from tightship.driver.protocol.forms import (
    ARGUMENTS_MAX,
    IDENTIFIERS,
    INDEXES_MAX,
    MODEL,
    MODEL_BYTES_MAX,
    MODEL_SOURCE,
    NAME,
    VALUE_TYPE,
)
from tightship.driver.protocol.messages import CacheFiles, Call, Role
from tightship.driver.protocol.replies import Failed, OutputShape, Reply, Timing
from tightship.driver.protocol.wire import (
    FORMS,
    I32,
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
_ROLES = row(record(Role), ARGUMENTS_MAX)
_TYPES = row(VALUE_TYPE, ARGUMENTS_MAX)
FORMS[ErrorStatus] = _status()
record(CacheFiles, model_files=_FILES, data_files=_FILES, token=_token())
record(Timing)

_CALL_FORMS: Mapping[int, Form[Any]] = {
    0: record(messages.Capabilities),
    1: record(
        messages.RegisterPool,
        protection=I32,
        file=I32,
        mode=I32,
        image=optional(record(Image, pixel_format=I32)),
    ),
    2: record(messages.UnregisterPool),
    3: record(messages.SupportedOperations),
    4: record(messages.Prepare, source=MODEL_SOURCE, preference=I32, priority=I32),
    5: record(messages.PrepareFromCache, priority=I32),
    6: record(messages.ReleaseModel),
    7: record(messages.Allocate, models=IDENTIFIERS, input_roles=_ROLES, output_roles=_ROLES),
    8: record(messages.Free),
    9: record(messages.CopyFrom),
    10: record(messages.CopyTo),
    11: record(messages.Execute),
    12: record(messages.ExecuteFenced, wait_for=_FILES),
    13: record(messages.GetExecutionInfo),
    14: record(messages.CreateExecution),
    15: record(messages.RunExecution),
    16: record(messages.RunExecutionFenced, wait_for=_FILES),
    17: record(messages.ReleaseExecution),
    18: record(messages.OpenBurst),
    19: record(messages.BurstExecute, slots=IDENTIFIERS),
    20: record(messages.ReleaseSlot),
    21: record(messages.CloseBurst),
    22: record(messages.Inspect, file=I32),
    23: record(messages.OpenRing, file=I32),
    24: record(messages.CopyBetween),
    25: record(messages.DescribeBuffer),
}

_REPLY_FORMS: Mapping[int, Form[Any]] = {
    128: record(replies.Done),
    129: record(replies.Failed, message=text(TEXT_BYTES_MAX)),
    130: record(
        replies.DriverCapabilities,
        feature_level=U32,
        features=row(NAME, FEATURES_MAX),
        model_cache_files=U32,
        data_cache_files=U32,
    ),
    131: record(replies.PoolRegistered),
    132: record(replies.Supported, operations=row(flag(), INDEXES_MAX)),
    133: record(replies.ModelPrepared, inputs=_TYPES, outputs=_TYPES),
    134: record(replies.Allocated),
    135: record(replies.Executed, shapes=row(record(OutputShape), ARGUMENTS_MAX)),
    136: record(replies.Launched),
    137: record(replies.ExecutionInfo),
    138: record(replies.ExecutionCreated),
    139: record(replies.BurstOpened),
    140: record(replies.Inspected),
    141: record(replies.BufferDescribed),
}
_TAGS = {
    kind: next(
        tag for tag, form in (*_CALL_FORMS.items(), *_REPLY_FORMS.items()) if form is FORMS[kind]
    )
    for kind in (*get_args(Call), *get_args(Reply))
}


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
