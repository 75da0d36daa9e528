"""HTTP requests and responses as values, and errors in the protocol's format."""

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from time import monotonic_ns
from typing import Any

from tightship.driver.oip.caller import Caller
from tightship.driver.oip.infer_request import REPEATED_BYTES_MAX, InferRequest
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code

HEADER_LENGTH = "inference-header-content-length"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """Whole request; names of headers are in lower case.

    Attributes:
        came_ns: Time of its arrival, by `monotonic_ns`.
        caller: Client that waits for the response.
        inference: What its body says, if that was read.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | bytearray | memoryview
    came_ns: int = field(default_factory=monotonic_ns)
    caller: Caller | None = None
    inference: InferRequest | None = None

    @property
    def has_small_header(self) -> bool:
        """Whether what is JSON in its body takes little time to read.

        Raises:
            OipError: `Inference-Header-Content-Length` is not a number.
        """
        if self.headers.get("content-encoding", "") not in {"", "identity"}:
            return False
        size_bytes = self.header_bytes
        return (len(self.body) if size_bytes is None else size_bytes) <= REPEATED_BYTES_MAX

    def content(self, bytes_max: int) -> bytes | bytearray | memoryview:
        """Return the body, unpacked from `gzip` or `deflate`.

        Raises:
            OipError: It does not unpack, or to more than `bytes_max` bytes.
        """
        encoding = self.headers.get("content-encoding", "").lower()
        if encoding in {"", "identity"}:
            return self.body
        if encoding not in {"gzip", "deflate"}:
            raise OipError(f"unsupported Content-Encoding '{encoding}'", Code.UNIMPLEMENTED)
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | (16 if encoding == "gzip" else 0))
        try:
            content = unpacker.decompress(self.body, bytes_max + 1)
        except zlib.error as error:
            raise OipError(f"the body is not {encoding}: {error}") from None
        if len(content) > bytes_max:
            raise OipError(f"the body unpacks to more than {bytes_max} bytes")
        if not unpacker.eof:
            raise OipError(f"the body is not {encoding}: it ends early")
        if unpacker.unused_data:
            raise OipError(f"the body is not {encoding}: there are bytes behind its end")
        return content

    @property
    def header_bytes(self) -> int | None:
        """Size of the JSON header in the body; None if all is JSON.

        Raises:
            OipError: `Inference-Header-Content-Length` is not a number.
        """
        said = self.headers.get(HEADER_LENGTH)
        if said is None:
            return None
        if not (said.isascii() and said.isdigit() and len(said) < 20):
            raise OipError(f"Inference-Header-Content-Length is '{said}'; it must be a number")
        return int(said)


@dataclass(frozen=True)
class HttpResponse:
    """Response whose body is in parts.

    Attributes:
        has_body: Whether to send the body, not only its length.
        allowed: Methods of the path, in the response to another method.
        more_headers: Names and values of further headers.
    """

    status: int = 200
    parts: tuple[bytes | memoryview, ...] = ()
    content_type: str = "application/json"
    header_bytes: int | None = None
    has_body: bool = True
    allowed: tuple[str, ...] = ()
    more_headers: tuple[tuple[bytes, bytes], ...] = ()

    @cached_property
    def size_bytes(self) -> int:
        """Size of the body."""
        return sum([len(each) if isinstance(each, bytes) else each.nbytes for each in self.parts])

    @cached_property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Names and values, except those of the connection; the length first."""
        found = [(b"Content-Length", b"%d" % self.size_bytes)]
        if self.parts:
            found.append((b"Content-Type", self.content_type.encode()))
        if self.header_bytes is not None:
            found.append((b"Inference-Header-Content-Length", b"%d" % self.header_bytes))
        if self.allowed:
            found.append((b"Allow", ", ".join(self.allowed).encode()))
        return [*found, *self.more_headers]

    @property
    def head(self) -> bytes:
        """Lines before the body, except those of the connection and the empty one."""
        return head_of(self.status, self.headers)

    @cached_property
    def whole(self) -> bytes:
        """All bytes, on a connection that stays open."""
        return b"".join([self.head, b"\r\n", *self.parts])

    @property
    def last_words(self) -> bytes:
        """All bytes, on a connection that then ends."""
        return b"".join([self.head, b"Connection: close\r\n\r\n", *self.parts])


def head_of(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the lines of a response before its body, except the empty one."""
    lines = [b"HTTP/1.1 %d %s\r\n" % (status, REASONS[status])]
    lines += [b"%s: %s\r\n" % each for each in headers]
    return b"".join(lines)


REASONS: Mapping[int, bytes] = {
    200: b"OK",
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    408: b"Request Timeout",
    413: b"Content Too Large",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    501: b"Not Implemented",
    503: b"Service Unavailable",
}


def json_response(said: Any) -> HttpResponse:  # noqa: ANN401
    """Return a response with a JSON value."""
    return HttpResponse(parts=(json.dumps(said).encode(),))


def error_response(status: int, message: str) -> HttpResponse:
    """Return a response with an error message."""
    return HttpResponse(status, (json.dumps({"error": message}).encode(),))
