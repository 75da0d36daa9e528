"""Requests of uvicorn's protocol within limits, whatever bytes come."""

from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tightship.driver.oip.http.message import HttpResponse, error_response


class ReadingProtocol(HttpToolsProtocol):
    """Protocol that keeps a refusal instead of an answer if bytes cannot be parsed.

    Nothing is parsed after a refusal. Trailers are ignored, and so are offers of other protocols.
    """

    def __init__(self, head_bytes_max: int, **given: Any) -> None:  # noqa: ANN401  of uvicorn
        """Accept targets with headers of so many bytes."""
        super().__init__(**given)
        self._head_bytes_max, self._head_bytes = head_bytes_max, 0
        self._has_head = False
        self._refusal: HttpResponse | None = None

    @property
    def is_made(self) -> bool:
        """Whether the connection has begun, with TLS after its handshake."""
        return self.transport is not None

    def refuse(self, status: int, message: str) -> None:
        """Keep a refusal; ignore the bytes that follow."""
        if self._refusal is None:
            self._refusal = error_response(status, message)

    def is_over(self) -> bool:
        """Whether further bytes are ignored."""
        return self._refusal is not None

    def feed(self, data: bytes) -> None:
        """Parse bytes of one or several requests."""
        rest = memoryview(data)
        while rest and not self.is_over():
            try:
                self.parser.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                rest = self._declined(rest[upgrade.args[0] :])
                continue
            except httptools.HttpParserError as error:
                self.refuse(400, f"the request is not HTTP/1.1: {error}")
            return

    def _declined(self, rest: memoryview) -> memoryview:
        """Rewrite a request that offers another protocol as one that does not.

        The parser ends such a request with its head, and takes `rest` to be of that protocol.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version()
        if self.is_over() or method == b"CONNECT":
            self.refuse(400, "the protocol cannot be changed")
            return memoryview(b"")
        said = dict(self.headers)
        said.pop(b"upgrade", None)
        is_last = b"close" in said[b"connection"].lower()
        said[b"connection"] = b"close" if is_last else b"keep-alive"
        lines = [b"%s: %s" % each for each in said.items()]
        head = b"%s %s HTTP/%s\r\n" % (method, self.url, version.encode())
        self.parser = httptools.HttpRequestParser(self)
        return memoryview(head + b"\r\n".join([*lines, b"", b""]) + rest)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._head_bytes, self._has_head = 0, False

    def on_url(self, url: bytes) -> None:
        """Append a piece of the target."""
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; those after the body are ignored."""
        self._count(len(name) + len(value))
        if not self._has_head:
            super().on_header(name, value)

    def _count(self, size_bytes: int) -> None:
        self._head_bytes += size_bytes
        if self._head_bytes > self._head_bytes_max:
            self.refuse(431, f"the request has more than {self._head_bytes_max} bytes of headers")

    def on_headers_complete(self) -> None:
        """Describe the request in its scope, unless it is refused or offers another protocol."""
        self._has_head = True
        if self.is_ignored():
            return
        path, _, query = self.url.partition(b"?")
        scope = self.scope
        scope["method"] = self.parser.get_method().decode("latin-1")
        scope["http_version"] = self.parser.get_http_version()
        scope["path"], scope["raw_path"] = path.decode("latin-1"), path
        scope["query_string"] = query

    def is_ignored(self) -> bool:
        """Whether what the parser reports is of no request to answer."""
        return self.is_over() or self.parser.should_upgrade()
