"""Frames of HTTP/2 by hand: calls of gRPC that no polite client makes."""

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, END_HEADERS = 1, 4
HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE = 1, 4


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def opening(window_bytes=65535):
    """Return a client's first bytes, which grant so many bytes of each answer.

    They allow the server no table of headers, so that answers never have indexes into one.

    It keeps no table of headers, so that those of answers are never numbers in it.
    """
    settings = struct.pack(">HIHI", HEADER_TABLE_SIZE, 0, INITIAL_WINDOW_SIZE, window_bytes)
    return PREFACE + frame(SETTINGS, 0, 0, settings)


def frames(connection):
    """Yield a server's frames until it hangs up: kinds, flags, streams and payloads."""
    with connection.makefile("rb") as source:
        while head := source.read(9):
            size, kind, flags, stream = struct.unpack(">IBBI", b"\0" + head)
            yield kind, flags, stream, source.read(size)


def call_head(method, stream=1):
    """Headers of a call; its message is to follow."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": f"/inference.GRPCInferenceService/{method}",
        ":authority": "localhost",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    block = b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())
    return frame(HEADERS, END_HEADERS, stream, block)


def _text(said):
    return bytes([len(said)]) + said.encode()


def half_message(size_bytes, stream=1):
    """Half of a message of so many bytes, within the window that every server opens with."""
    return frame(DATA, 0, stream, b"\0" + struct.pack(">I", size_bytes) + bytes(size_bytes // 2))


def other_half(size_bytes, stream=1):
    """Return the bytes that complete half of a message of so many bytes, and end the stream."""
    return frame(DATA, END_STREAM, stream, bytes(size_bytes - size_bytes // 2))


def status_in(block):
    """The number of a status in headers."""
    _, _, rest = block.partition(b"grpc-status")
    return int(rest[1 : 1 + rest[0]])
