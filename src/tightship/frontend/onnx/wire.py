"""Positions of fields in the protobuf wire format, found without copying."""

from collections.abc import Iterator
from typing import NamedTuple

from tightship.errors import FormatError

VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5

_VARINT_BYTES_MAX = 10


class Field(NamedTuple):
    """Field of a message: its tag starts at `start`, its payload is `[begin, stop)`."""

    number: int
    wire_type: int
    start: int
    begin: int
    stop: int


def read_varint(data: memoryview, position: int, stop: int) -> tuple[int, int]:
    """Return the unsigned integer at a position, and the position after it.

    Raises:
        FormatError: It reaches `stop`, or is longer than 64 bits.
    """
    value = 0
    for index in range(_VARINT_BYTES_MAX):
        if position + index >= stop:
            raise FormatError(f"A number at byte {position} runs past byte {stop}.")
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise FormatError(f"A number at byte {position} has more than {_VARINT_BYTES_MAX} bytes.")


def write_varint(value: int) -> bytes:
    """Encode a non-negative integer."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(data: memoryview, start: int, stop: int) -> Iterator[Field]:
    """Yield the fields of the message `[start, stop)` in order.

    Raises:
        FormatError: A field exceeds the message, or has a wire type that ONNX never uses.
    """
    position = start
    while position < stop:
        tag, begin = read_varint(data, position, stop)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == LENGTH_DELIMITED:
            size, begin = read_varint(data, begin, stop)
            end = begin + size
        elif wire_type == VARINT:
            end = read_varint(data, begin, stop)[1]
        elif wire_type in (FIXED32, FIXED64):
            end = begin + (4 if wire_type == FIXED32 else 8)
        else:
            raise FormatError(f"Field {number} at byte {position} has wire type {wire_type}.")
        if number == 0 or end > stop:
            raise FormatError(
                f"Field {number} at byte {position} needs bytes up to {end}, but its message "
                f"ends at byte {stop}."
            )
        yield Field(number, wire_type, position, begin, end)
        position = end
