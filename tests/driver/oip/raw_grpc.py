"""Frames of HTTP/2 by hand: calls of gRPC that no polite client makes."""

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_HEADERS = 4


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def opening():
    """What a client sends first."""
    return PREFACE + frame(SETTINGS, 0, 0, b"")


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
