"""HTTP requests and responses as values, and errors in the protocol's format."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from time import monotonic_ns
from typing import Any

from tightship.driver.oip.caller import Caller
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code

HEADER_LENGTH = "inference-header-content-length"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """Whole request with time of arrival and caller; names of headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | bytearray
    came_ns: int = field(default_factory=monotonic_ns)
    caller: Caller | None = None

    def content(self, bytes_max: int) -> bytes | bytearray:
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
    """

    status: int = 200
    parts: tuple[bytes | memoryview, ...] = ()
    content_type: str = "application/json"
    header_bytes: int | None = None
    has_body: bool = True
    allowed: tuple[str, ...] = ()

    @cached_property
    def head(self) -> bytes:
        """Lines before the body, except those of the connection and the empty one."""
        lines = [
            f"HTTP/1.1 {self.status} {REASONS[self.status]}",
            f"Content-Length: {sum(memoryview(part).nbytes for part in self.parts)}",
        ]
        if self.parts:
            lines.append(f"Content-Type: {self.content_type}")
        if self.header_bytes is not None:
            lines.append(f"Inference-Header-Content-Length: {self.header_bytes}")
        if self.allowed:
            lines.append(f"Allow: {', '.join(self.allowed)}")
        return "".join(f"{line}\r\n" for line in lines).encode()


REASONS: Mapping[int, str] = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
}


def json_response(said: Any) -> HttpResponse:  # noqa: ANN401
    """Return a response with a JSON value."""
    return HttpResponse(parts=(json.dumps(said).encode(),))


def error_response(status: int, message: str) -> HttpResponse:
    """Return a response with an error message."""
    return HttpResponse(status, (json.dumps({"error": message}).encode(),))
