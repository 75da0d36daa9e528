"""One request and its response on a connection of uvicorn."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol
from weakref import ref

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from tightship.driver.oip.http.message import head_of

HELD_BYTES_MAX = 64 << 10
"""Bytes of a body that wait for the application before no more are read."""

LAST_CHUNK = b"0\r\n\r\n"

Gone = Callable[[], None]
"""Called once a client has disconnected. Named, as `watch_of` would else make it per request."""


class Channel(Protocol):
    """Connection as its cycles use it."""

    def read_on(self) -> None:
        """Read further bytes of the client, if they may come now."""

    def watch(self) -> None:
        """Notice from now on that the client disconnects, even if nothing is read."""

    def is_kept(self) -> bool:
        """Whether it may stay open after the current response."""


class Cycle(RequestResponseCycle):
    """Request that passes the parts of its body on as they came, and answers in one write.

    The response has the names of headers as the application writes them.
    """

    def __init__(self, channel: Channel, **given: Any) -> None:  # noqa: ANN401  of uvicorn
        """Begin a request of a channel."""
        super().__init__(**given)
        self._channel = channel
        self._parts: deque[bytes] = deque()
        self._head: list[bytes] = []
        self.held_bytes = 0
        self._has_passed_end = False
        self._is_chunked = False
        self._gone: Gone | None = None

    def add(self, part: bytes) -> None:
        """Append a part of the body."""
        self._parts.append(part)
        self.held_bytes += len(part)
        self.message_event.set()

    def end_body(self) -> None:
        """Note that the body is complete."""
        self.more_body = False
        self.message_event.set()

    def is_all(self, data: bytes) -> bool:
        """Whether bytes are those of this request alone, on a connection that stays open."""
        head, end, _ = data.partition(b"\r\n\r\n")
        is_whole = bool(end) and len(head) + len(end) + self.held_bytes == len(data)
        return is_whole and bool(self.keep_alive)

    def disconnect(self) -> None:
        """Tell the application that its response will not be sent."""
        self.disconnected = True
        self._parts.clear()
        self.message_event.set()
        if self._gone is not None:
            self._gone()

    def when_gone(self, gone: Gone) -> None:
        """Call a function once the client disconnects before it has the response."""
        self._gone = gone
        if self.flow.read_paused:  # otherwise the event loop notices it
            self._channel.watch()

    async def receive(self) -> Any:  # noqa: ANN401  an event of ASGI
        """Return the next part of the body, and then the end of the connection."""
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        while not (self._parts or self._has_end() or self._is_over()):
            self.message_event.clear()
            if self.more_body:
                self._channel.read_on()
            else:
                self._channel.watch()
            await self.message_event.wait()
        if self._is_over():
            return {"type": "http.disconnect"}
        part = self._parts.popleft() if self._parts else b""
        self.held_bytes -= len(part)
        more = bool(self._parts) or self.more_body
        self._has_passed_end = not more
        return {"type": "http.request", "body": part, "more_body": more}

    def _has_end(self) -> bool:
        """Whether the end of the body is to be passed on."""
        return not (self.more_body or self._has_passed_end)

    def _is_over(self) -> bool:
        return self.disconnected or self.response_complete

    async def send(self, message: Any) -> None:  # noqa: ANN401  an event of ASGI
        """Send the next part of the response; its head goes together with the first part."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected or self.transport.is_closing():
            return
        if message["type"] == "http.response.start":
            self._begin(message["status"], list(message.get("headers", ())))
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._is_chunked:
            body = _chunk(body) + (b"" if more else LAST_CHUNK)
        parts = [*self._head, *([body] if len(body) and self.scope["method"] != "HEAD" else [])]
        self._head = []
        if len(parts) == 2 and len(body) <= HELD_BYTES_MAX:
            parts = [b"".join(parts)]
        for part in parts:
            self.transport.write(part)
        if not more:
            self.response_complete, self._gone = True, None
            self.message_event.set()
            self.on_response()

    def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.response_started = True
        self.waiting_for_100_continue = False
        if (b"Connection", b"close") in headers:
            self.keep_alive = False
        elif not (self.keep_alive and self._channel.is_kept()):
            self.keep_alive = False
            headers.append((b"Connection", b"close"))
        if not any(name.lower() == b"content-length" for name, _ in headers):
            self._begin_unknown(headers)
        self._head = [head_of(status, headers) + b"\r\n"]

    def _begin_unknown(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Send a response of unknown length in chunks; to old clients until the connection ends."""
        if self.scope.get("http_version") == "1.1":
            self._is_chunked = True
            headers.append((b"Transfer-Encoding", b"chunked"))
        elif self.keep_alive:
            self.keep_alive = False
            headers.append((b"Connection", b"close"))


def cycle_of(connection: Any, *, keep_alive: bool) -> Cycle:  # noqa: ANN401  of uvicorn
    """Return the cycle of the request whose head a connection of uvicorn has read."""
    return Cycle(
        connection,
        scope=connection.scope,
        transport=connection.transport,
        flow=connection.flow,
        logger=connection.logger,
        access_logger=connection.access_logger,
        access_log=False,
        default_headers=[],
        message_event=asyncio.Event(),
        expect_100_continue=connection.expect_100_continue,
        keep_alive=keep_alive,
        on_response=connection.on_response_complete,
    )


def watch_of(cycle: Cycle) -> Callable[[Gone], None]:
    """Return `cycle.when_gone` for the scope of its request.

    A reference to the cycle, which has the scope, would leave every request with its body to the
    garbage collector, which looks at what is old too rarely.
    """
    weak = ref(cycle)

    def watch(gone: Gone) -> None:
        found = weak()
        if found is not None:
            found.when_gone(gone)

    return watch


def _chunk(body: bytes | memoryview) -> bytes:
    """Return bytes as a chunk; none for none, because an empty chunk is the last."""
    return b"%x\r\n%b\r\n" % (len(body), bytes(body)) if len(body) else b""
