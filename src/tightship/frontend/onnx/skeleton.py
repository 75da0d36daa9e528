"""Model without the bytes of its large tensors.

The file is walked once. Small fields are copied; of a tensor whose elements take
`PAYLOAD_BYTES_MIN` or more, only the position in the file is kept:

    file       model | graph | node node ... | initializer: dims, type, raw_data (98 MB) | ...
    skeleton   model | graph | node node ... | initializer: dims, type, segment          | ...
                                                                          |
    payloads                                  (begin, end) -> the field that was there --+

`segment` carries the position because it is the one field of a tensor that no writer uses.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from tightship.errors import FormatError
from tightship.frontend.onnx import wire

PAYLOAD_BYTES_MIN = 512
"""Size below which elements stay in the skeleton."""

_DEPTH_MAX = 100


class TensorField(enum.IntEnum):
    """Field numbers of a TensorProto that hold elements."""

    FLOAT_DATA = 4
    INT32_DATA = 5
    INT64_DATA = 7
    RAW_DATA = 9
    DOUBLE_DATA = 10
    UINT64_DATA = 11


class _Message(enum.Enum):
    """Messages that can contain a tensor."""

    MODEL = enum.auto()
    GRAPH = enum.auto()
    FUNCTION = enum.auto()
    NODE = enum.auto()
    ATTRIBUTE = enum.auto()
    SPARSE_TENSOR = enum.auto()
    TENSOR = enum.auto()


_CHILDREN: dict[_Message, dict[int, _Message]] = {
    _Message.MODEL: {7: _Message.GRAPH, 25: _Message.FUNCTION},
    _Message.GRAPH: {1: _Message.NODE, 5: _Message.TENSOR, 15: _Message.SPARSE_TENSOR},
    _Message.FUNCTION: {7: _Message.NODE, 11: _Message.ATTRIBUTE},
    _Message.NODE: {5: _Message.ATTRIBUTE},
    _Message.ATTRIBUTE: {
        5: _Message.TENSOR,
        6: _Message.GRAPH,
        10: _Message.TENSOR,
        11: _Message.GRAPH,
        22: _Message.SPARSE_TENSOR,
        23: _Message.SPARSE_TENSOR,
    },
    _Message.SPARSE_TENSOR: {1: _Message.TENSOR, 2: _Message.TENSOR},
    _Message.TENSOR: {},
}

_DROPPED: dict[_Message, frozenset[int]] = {
    _Message.MODEL: frozenset({6, 14, 20, 26}),
    _Message.GRAPH: frozenset({10, 14, 16}),
    _Message.FUNCTION: frozenset({8, 14}),
    _Message.NODE: frozenset({6, 9, 10}),
    _Message.ATTRIBUTE: frozenset({13}),
    _Message.SPARSE_TENSOR: frozenset(),
    _Message.TENSOR: frozenset({12, 16}),
}
"""Fields that do not affect the computation: documentation, metadata, training."""

_PAYLOAD_FIELDS = frozenset(field.value for field in TensorField)

_KNOWN_FIELD_MAX = 32
_SEGMENT = 3


@dataclass(frozen=True, slots=True)
class Skeleton:
    """Parsed model, and the field of each removed byte range `(begin, end)`."""

    model: onnx.ModelProto
    payloads: Mapping[tuple[int, int], TensorField]


def read_skeleton(data: memoryview, name: str) -> Skeleton:
    """Parse a model's bytes without reading its large tensors.

    Args:
        data: Whole file.
        name: Name of the file in messages.

    Raises:
        FormatError: The bytes are not an ONNX model.
    """
    if not data:
        raise FormatError(f"`{name}` is not an ONNX model: it is empty.")
    stripper = _Stripper(data)
    try:
        stripped = stripper.strip(_Message.MODEL, 0, len(data), 0)
        model = onnx.ModelProto.FromString(stripped)
    except (FormatError, DecodeError) as error:
        raise FormatError(f"`{name}` is not an ONNX model, or is truncated: {error}") from None
    if model.ir_version < 1 or not model.HasField("graph"):
        missing = "IR version" if model.ir_version < 1 else "graph"
        raise FormatError(f"`{name}` is not an ONNX model: it has no {missing}.")
    return Skeleton(model, stripper.payloads)


class _Stripper:
    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.payloads: dict[tuple[int, int], TensorField] = {}

    def strip(self, message: _Message, start: int, stop: int, depth: int) -> bytes:
        """Return the message `[start, stop)` as bytes, without payloads and dropped fields."""
        if depth > _DEPTH_MAX:
            raise FormatError(f"messages are nested deeper than {_DEPTH_MAX}.")
        children, dropped = _CHILDREN[message], _DROPPED[message]
        out = bytearray()
        copied = start
        for field in wire.fields(self._data, start, stop):
            size = field.stop - field.begin
            delimited = field.wire_type == wire.LENGTH_DELIMITED
            if message is _Message.TENSOR and field.number == _SEGMENT:
                raise FormatError(f"the tensor at byte {start} is stored in segments.")
            if size < PAYLOAD_BYTES_MIN or not delimited:
                continue
            replacement = b""
            if field.number in children:
                child = self.strip(children[field.number], field.begin, field.stop, depth + 1)
                replacement = _delimited(field.number, child)
            elif message is _Message.TENSOR and field.number in _PAYLOAD_FIELDS:
                replacement = self._payload(field)
            elif field.number not in dropped and field.number < _KNOWN_FIELD_MAX:
                continue
            out += self._data[copied : field.start]
            out += replacement
            copied = field.stop
        out += self._data[copied:stop]
        return bytes(out)

    def _payload(self, field: wire.Field) -> bytes:
        self.payloads[field.begin, field.stop] = TensorField(field.number)
        place = b"\x08" + wire.write_varint(field.begin) + b"\x10" + wire.write_varint(field.stop)
        return _delimited(_SEGMENT, place)


def _delimited(number: int, payload: bytes) -> bytes:
    tag = wire.write_varint(number << 3 | wire.LENGTH_DELIMITED)
    return tag + wire.write_varint(len(payload)) + payload
