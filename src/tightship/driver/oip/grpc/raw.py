"""Raw tensors in encoded messages, cut out and joined without copying.

In protobuf a field is a key, a varint of number and kind; strings and messages follow as a length
and that many bytes.
"""

from collections.abc import Sequence

from tightship.driver.oip.refusal import OipError

VARINT, FIXED64, COUNTED, FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}
_ENDS_EARLY = "the message ends within a field"


def cut(data: bytes, number: int) -> tuple[bytes, list[memoryview]]:
    """Split an encoded message into the rest and the contents of a field of bytes.

    Raises:
        OipError: It is not a valid message.
    """
    whole, rest, raw = memoryview(data), [], []
    at = kept = 0
    while at < len(data):
        start = at
        key, at = _varint(data, at)
        kind = key & 7
        if kind == COUNTED:
            length, begin = _varint(data, at)
            at = begin + length
        elif kind == VARINT:
            _, at = _varint(data, at)
        elif kind in _FIXED_BYTES:
            at += _FIXED_BYTES[kind]
        else:
            raise OipError(f"the message has a field of kind {kind}")
        if at > len(data):
            raise OipError(_ENDS_EARLY)
        if key == number << 3 | COUNTED:
            raw.append(whole[begin:at])
            rest.append(whole[kept:start])
            kept = at
    return (b"".join([*rest, whole[kept:]]) if raw else data), raw


def joined(message: bytes, number: int, raw: Sequence[bytes | memoryview]) -> bytes:
    """Append a field of bytes to an encoded message, once for each of `raw`."""
    key = _encoded(number << 3 | COUNTED)
    pieces: list[bytes | memoryview] = [message]
    for each in raw:
        pieces += (key, _encoded(memoryview(each).nbytes), each)
    return b"".join(pieces)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            raise OipError(_ENDS_EARLY)
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise OipError("the message has a number of more than 10 bytes")


def _encoded(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
