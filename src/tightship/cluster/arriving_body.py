"""Bodies of requests as they arrive: bytes, or arrays if they are JSON, within limits."""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tightship.cluster.json_arrays import PIECE_BYTES, JsonArrays, TextTooLargeError
from tightship.cluster.request_memory import BodyLimits
from tightship.driver.oip.http.message import (
    HEADER_LENGTH,
    HttpRequest,
    HttpResponse,
    error_response,
)
from tightship.driver.oip.refusal import OUT_OF_MEMORY, OipError
from tightship.driver.oip.regions import Code

TOO_LARGE = 413
TEXT = "of text besides numbers"
WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


@dataclass(frozen=True, slots=True)
class JsonRequest(HttpRequest):
    """Request whose body was read as it arrived."""

    arrays: JsonArrays = field(default_factory=lambda: JsonArrays(0, 0))


class ArrivingBody:
    """Body of one request, of which parts arrive."""

    def __init__(self, request: HttpRequest, limits: BodyLimits) -> None:
        """Expect a body.

        Args:
            request: The request without its body.
            limits: Largest bodies.
        """
        self._request, self._limits = request, limits
        is_inference = request.method == "POST" and request.target.endswith("/infer")
        is_json = is_inference and HEADER_LENGTH not in request.headers
        self._arrays = JsonArrays(limits.numbers, limits.json_bytes) if is_json else None
        self._body = bytearray()
        self._size_bytes = 0
        self._refusal: HttpResponse | None = None
        self._unpacker: _Unpacker | None = None
        if is_json:
            try:
                self._unpacker = _unpacker(request.headers)
            except OipError as error:
                self._refusal = _refused(error)

    def feed(self, part: bytes) -> None:
        """Take a part; of a request that is refused already, only the size counts."""
        self._size_bytes += len(part)
        if self._refusal is not None:
            return
        try:
            self._take(part)
        except TextTooLargeError:
            self._refuse(too_large(self._size_bytes, self._limits.json_bytes, TEXT))
        except OipError as error:
            self._refuse(_refused(error))
        except zlib.error as error:
            self._refuse(_refused(OipError(f"the body does not unpack: {error}")))
        except MemoryError as error:
            self.overrun(error)

    def overrun(self, error: MemoryError) -> None:
        """Refuse the request for lack of memory, unless it is refused already."""
        if self._refusal is None:
            text = str(error) or OUT_OF_MEMORY
            self._refuse(error_response(Code.UNAVAILABLE.http_status, text))

    def end(self) -> HttpRequest | HttpResponse:
        """Return the whole request, or its refusal."""
        if self._refusal is None and self._unpacker is not None and not self._unpacker.is_whole:
            self._refuse(_refused(OipError("the packed body ends early or late")))
        if self._refusal is not None:
            return self._refusal
        asked = self._request
        if self._arrays is None:
            return replace(asked, body=self._body)
        return JsonRequest(asked.method, asked.target, asked.headers, b"", arrays=self._arrays)

    def _take(self, part: bytes) -> None:
        if self._arrays is not None:
            for text in [part] if self._unpacker is None else self._unpacker.pieces(part):
                self._arrays.feed(text)
            return
        if self._size_bytes > self._limits.raw_bytes:
            self._refuse(too_large(self._size_bytes, self._limits.raw_bytes))
            return
        self._body += part

    def _refuse(self, response: HttpResponse) -> None:
        self._refusal, self._arrays, self._body = response, None, bytearray()


class _Unpacker:
    """Unpacks parts of a body, some text at once."""

    def __init__(self, window: int) -> None:
        self._unpacker = zlib.decompressobj(window)

    @property
    def is_whole(self) -> bool:
        return self._unpacker.eof and not self._unpacker.unused_data

    def pieces(self, part: bytes) -> Iterator[bytes]:
        while part and not self._unpacker.eof:
            yield self._unpacker.decompress(part, PIECE_BYTES)
            part = self._unpacker.unconsumed_tail


def _unpacker(headers: Mapping[str, str]) -> _Unpacker | None:
    encoding = headers.get("content-encoding", "").lower()
    if encoding in {"", "identity"}:
        return None
    if encoding not in WINDOWS:
        raise OipError(f"unsupported Content-Encoding '{encoding}'", Code.UNIMPLEMENTED)
    return _Unpacker(WINDOWS[encoding])


def _refused(error: OipError) -> HttpResponse:
    return error_response(error.code.http_status, str(error))


def too_large(size_bytes: int, most: int, kind: str = "") -> HttpResponse:
    """Return the refusal of a body, with the remedy."""
    return error_response(
        TOO_LARGE,
        f"the request has {size_bytes} bytes {kind}".rstrip() + f"; this replica has room for "
        f"{most}. Send tensors as raw bytes (`binary_data_size`), or deploy with a larger "
        "`max_memory`.",
    )
