"""Bytes of a connection read as requests of HTTP/1.1, within limits."""

from typing import Protocol

import httptools

from tightship.driver.oip.http.message import HttpRequest
from tightship.driver.oip.limits import FaceLimits


class Receiver(Protocol):
    """Is told what bytes are found to be."""

    def request_begun(self) -> None:
        """The first bytes of a request are there."""

    def head_came(self) -> None:
        """The headers of a request are complete."""

    def body_awaited(self) -> None:
        """The client waits to be told that it may send the body of a request."""

    def request_came(self, request: HttpRequest, *, is_kept: bool) -> None:
        """A request is whole; its connection stays for another one if `is_kept`."""

    def refuse(self, status: int, message: str) -> None:
        """Bytes are not understood from here on, for a reason."""


class RequestReader:
    """Finds requests in bytes, however these are cut.

    Nothing is told of what comes behind bytes that were refused.
    """

    def __init__(self, limits: FaceLimits, receiver: Receiver) -> None:
        self._limits, self._receiver = limits, receiver
        self._parser = httptools.HttpRequestParser(self)
        self._is_refused = False
        self._clear()

    def _clear(self) -> None:
        self._target, self._headers, self._body = b"", dict[str, str](), bytearray()
        self._head_bytes, self._has_head = 0, False

    def read(self, data: bytes) -> None:
        """Tell what bytes are, behind those before."""
        rest = memoryview(data)
        while rest:
            try:
                self._parser.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                rest = self._declined(rest[upgrade.args[0] :])
                continue
            except httptools.HttpParserError as error:
                self._refuse(400, f"the request is no HTTP/1.1: {error}")
            return

    def discard(self) -> None:
        """Drop what has come of a request, and ignore the bytes that follow."""
        self._is_refused = True
        self._clear()

    def close(self) -> None:
        """Drop the parser and the receiver, with which this is a reference cycle; read no more."""
        self.discard()
        del self._parser, self._receiver

    def _declined(self, rest: memoryview) -> memoryview:
        """A request that offers to speak another protocol, as one that does not.

        The parser takes such a request to end with its head, and `rest` to be of that protocol.
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
        """The parser found the first bytes of a request."""
        self._clear()
        self._receiver.request_begun()

    def on_url(self, url: bytes) -> None:
        """The parser found a piece of the target."""
        self._target += self._counted(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """The parser found a header; one behind the body says nothing of it."""
        key = self._counted(name).decode("latin-1").lower()
        said = self._counted(value).decode("latin-1")
        if not self._has_head:
            self._headers[key] = said

    def on_headers_complete(self) -> None:
        """The parser found the end of the headers: the length of the body is known, if it is."""
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
        """The parser found a piece of the body."""
        if self._is_refused:
            return
        if len(self._body) + len(body) > self._limits.body_bytes_max:
            self._refuse_body()
        else:
            self._body += body

    def on_message_complete(self) -> None:
        """The parser found the end of a request."""
        if self._is_refused or self._parser.should_upgrade():
            return
        method = self._parser.get_method().decode("latin-1")
        target = self._target.decode("latin-1")
        request = HttpRequest(method, target, self._headers, self._body)
        is_recent = self._parser.get_http_version() != "1.0"  # else it would want to be told
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
            f"the body of a request may have {limit} bytes; the server takes more when it is "
            "started with a larger `--max-body`",
        )

    def _refuse(self, status: int, message: str) -> None:
        if not self._is_refused:
            self.discard()
            self._receiver.refuse(status, message)
