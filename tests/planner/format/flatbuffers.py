"""Flatbuffers written from nested values, for tests that read them."""

import struct
from dataclasses import dataclass


@dataclass
class Scalar:
    """A number of a `struct` kind."""

    kind: str
    value: int


def flatbuffer(identifier, root):
    """A file; a table is a dict from field indices to values.

    A value is a dict (table), a `Scalar`, a str, bytes (vector of ubyte), a list of ints (vector
    of int32) or a list of dicts (vector of tables).
    """
    data = bytearray(4) + identifier
    pending = [(0, root)]
    while pending:
        at, value = pending.pop(0)
        start = _append(data, value, pending)
        struct.pack_into("<I", data, at, start - at)
    return bytes(data)


def _append(data, value, pending):
    data += bytes(-len(data) % 16)
    if isinstance(value, dict):
        return _append_table(data, value, pending)
    if isinstance(value, str):
        value = value.encode()
        data += struct.pack("<I", len(value)) + value + b"\0"
        return len(data) - len(value) - 5
    start = len(data)
    if isinstance(value, bytes):
        data += struct.pack("<I", len(value)) + value
    elif all(isinstance(each, int) for each in value):
        data += struct.pack(f"<I{len(value)}i", len(value), *value)
    else:
        data += struct.pack("<I", len(value)) + bytes(4 * len(value))
        pending.extend((start + 4 + 4 * i, table) for i, table in enumerate(value))
    return start


def _append_table(data, fields, pending):
    count = max(fields, default=-1) + 1
    body = bytearray(4)
    places = [0] * count
    later = []
    for index, value in fields.items():
        kind = value.kind if isinstance(value, Scalar) else "I"
        body += bytes(-len(body) % struct.calcsize(kind))
        places[index] = len(body)
        if isinstance(value, Scalar):
            body += struct.pack(f"<{kind}", value.value)
        else:
            later.append((len(body), value))
            body += bytes(4)
    vtable = len(data)
    data += struct.pack(f"<HH{count}H", 4 + 2 * count, len(body), *places)
    data += bytes(-len(data) % 16)
    start = len(data)
    struct.pack_into("<i", body, 0, start - vtable)
    data += body
    pending.extend((start + at, value) for at, value in later)
    return start
