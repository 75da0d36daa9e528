"""Parser of HTTP/1.1 requests, within limits."""

from typing import Protocol

import httptools

from tightship.driver.oip.http.message import HttpRequest
from tightship.driver.oip.limits import EndpointLimits


class Receiver(Protocol):
    """Receives the events of a parser."""

    def request_begun(self) -> None:
        """Handle the first bytes of a request."""

    def head_came(self) -> None:
        """Handle the end of the headers."""

    def body_awaited(self) -> None:
        """Handle a client that waits for permission to send the body."""

    def request_came(self, request: HttpRequest, *, is_kept: bool) -> None:
        """Handle a whole request; its connection stays open if `is_kept`."""

    def refuse(self, status: int, message: str) -> None:
        """Handle bytes that cannot be parsed."""


class RequestReader:
    """Finds requests in bytes that come in any pieces.

    Nothing is reported after a refusal.
    """

    def __init__(self, limits: EndpointLimits, receiver: Receiver) -> None:
        self._limits, self._receiver = limits, receiver
        self._parser = httptools.HttpRequestParser(self)
        self._is_refused = False
        self._clear()

    def _clear(self) -> None:
        self._target, self._headers, self._body = b"", dict[str, str](), bytearray()
        self._head_bytes, self._has_head = 0, False

    def read(self, data: bytes) -> None:
        """Parse further bytes."""
        rest = memoryview(data)
        while rest:
            try:
                self._parser.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                rest = self._declined(rest[upgrade.args[0] :])
                continue
            except httptools.HttpParserError as error:
                self._refuse(400, f"the request is not HTTP/1.1: {error}")
            return

    def discard(self) -> None:
        """Drop an incomplete request, and ignore the bytes that follow."""
        self._is_refused = True
        self._clear()

    def close(self) -> None:
        """Drop parser and receiver, which form a reference cycle; nothing may be read after."""
        self.discard()
        del self._parser, self._receiver

    def _declined(self, rest: memoryview) -> memoryview:
        """Rewrite a request that offers another protocol as one that does not.

        The parser ends such a request with its head, and takes `rest` to be of that protocol.
        """
        method, version = self._parser.get_method(), self._parser.get_http_version()
        if self._is_refused or method == b"CONNECT":
            self._refuse(400, "the protocol cannot be changed")
            return memoryview(b"")
        said = self._headers
        said.pop("upgrade", None)
        said["connection"] = "close" if "close" in said["connection"].lower() else "keep-alive"
        lines = [f"{name}: {value}" for name, value in said.items()]
        head = b"%s %s HTTP/%s\r\n" % (method, self._target, version.encode())
        self._parser = httptools.HttpRequestParser(self)
        return memoryview(head + "\r\n".join([*lines, "", ""]).encode("latin-1") + rest)

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._clear()
        self._receiver.request_begun()

    def on_url(self, url: bytes) -> None:
        """Append a piece of the target."""
        self._target += self._counted(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; those after the body are ignored."""
        key = self._counted(name).decode("latin-1").lower()
        said = self._counted(value).decode("latin-1")
        if not self._has_head:
            self._headers[key] = said

    def on_headers_complete(self) -> None:
        """Check the headers, and the length of the body if it is known."""
        self._has_head = True
        if self._parser.should_upgrade():
            return
        self._receiver.head_came()
        said = self._headers.get("content-length", "0")
        if not said.isdigit() or int(said) > self._limits.body_bytes_max:
            self._refuse_body()
        elif self._headers.get("expect", "").lower() == "100-continue":
            self._receiver.body_awaited()

    def on_body(self, body: bytes) -> None:
        """Append a piece of the body."""
        if self._is_refused:
            return
        if len(self._body) + len(body) > self._limits.body_bytes_max:
            self._refuse_body()
        else:
            self._body += body

    def on_message_complete(self) -> None:
        """Pass a whole request on."""
        if self._is_refused or self._parser.should_upgrade():
            return
        method = self._parser.get_method().decode("latin-1")
        target = self._target.decode("latin-1")
        request = HttpRequest(method, target, self._headers, self._body)
        # HTTP/1.0 clients expect a keep-alive header, which is not sent.
        is_recent = self._parser.get_http_version() != "1.0"
        is_kept = is_recent and self._parser.should_keep_alive()
        self._clear()  # an idle connection keeps no body
        self._receiver.request_came(request, is_kept=is_kept)

    def _counted(self, piece: bytes) -> bytes:
        self._head_bytes += len(piece)
        limit = self._limits.head_bytes_max
        if self._head_bytes <= limit:
            return piece
        self._refuse(431, f"the request has more than {limit} bytes of headers")
        return b""

    def _refuse_body(self) -> None:
        limit = self._limits.body_bytes_max
        self._refuse(
            413,
            f"the body of a request may have {limit} bytes; start the server with a larger "
            "`--max-body`",
        )

    def _refuse(self, status: int, message: str) -> None:
        if not self._is_refused:
            self.discard()
            self._receiver.refuse(status, message)
