"""One connection of a client: bytes of HTTP/1.1 in and out, one request at a time."""

import asyncio
from collections import deque
from concurrent.futures import Executor
from dataclasses import dataclass, field

import httptools

from tightship.driver.oip.http_calls import Asked, HttpCalls
from tightship.driver.oip.http_message import HttpRequest, HttpResponse, error_response
from tightship.driver.oip.lending import REQUEST_BYTES_MAX, Lending
from tightship.driver.oip.limits import FaceLimits
from tightship.driver.oip.refusal_log import RefusalLog

LINGER_S = 5.0
"""Seconds a refused client may go on sending, so that it comes to read why."""
JOINED_BYTES_MAX = 64 << 10
"""Responses up to this size are written as one piece."""
PATIENCE_MAX = 64
"""Known requests in a row, at most, before a connection is lent that was lent in vain."""


@dataclass(slots=True, eq=False)
class Shared:
    """What the connections of a server share."""

    calls: HttpCalls
    limits: FaceLimits
    executor: Executor
    lending: Lending
    log: RefusalLog
    connections: "set[HttpConnection]" = field(default_factory=set)
    is_empty: asyncio.Event = field(default_factory=asyncio.Event)


class HttpConnection(asyncio.Protocol):
    """The state of a connection; all but the answers happens on the event loop.

    While a call is answered nothing more is read than what has come with it, and the next answer
    is begun once the client has taken the one before: so a client fills no memory by haste.
    """

    def __init__(self, server: Shared) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[tuple[Asked, bool]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._refusal: HttpResponse | None = None
        self._is_answering = self._is_receiving = self._is_choked = False
        self._is_ending = self._is_draining = False
        self._fresh, self._complete = b"", list[Asked]()
        self._is_granted = False
        self._loan = self._known_count = 0
        self._patience = 1
        self._clear()

    def _clear(self) -> None:
        self._target, self._headers, self._body = b"", dict[str, str](), bytearray()
        self._head_bytes, self._has_head = 0, False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count it, or refuse it."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        host, port, *_ = transport.get_extra_info("peername")
        self._client = f"http:{host}:{port}"
        connections = self._server.connections
        is_full = len(connections) >= self._server.limits.connections_max
        connections.add(self)
        self._server.is_empty.clear()
        if is_full:
            self._refuse(503, "too many connections; try again later")
            self._end_if_refused()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Forget it; an answer that is on its way goes nowhere."""
        self._is_ending = True
        self._waiting.clear()
        self._stop_timer()
        self._recall()
        self._server.connections.discard(self)
        if not self._server.connections:
            self._server.is_empty.set()

    def data_received(self, data: bytes) -> None:
        """Bytes of a request, or of several."""
        if self._is_ending:
            return
        self._fresh = data if self._is_idle and len(data) <= REQUEST_BYTES_MAX else b""
        known = self._server.calls.known(self._fresh)
        self._complete.clear()
        if known is None:
            self._read(data)
        else:
            self._complete.append(known)
            self._waiting.append((known, True))
            self._next()
        if (self._is_answering or self._is_choked) and self._transport.is_reading():
            self._transport.pause_reading()
        self._end_if_refused()
        self._settle()

    @property
    def _is_idle(self) -> bool:
        """Whether nothing of a request is here, and nothing is to be written."""
        is_busy = self._is_receiving or self._is_answering or self._is_choked or self._waiting
        return not (is_busy or self._is_ending or self._is_draining or self._refusal)

    def _settle(self) -> None:
        """Remember what has come by itself and was granted; lend its connection if it was known.

        Of known bytes nobody asks again whether they may be answered.
        """
        if not (self._fresh and self._is_idle and len(self._complete) == 1):
            return
        fresh, self._fresh = self._fresh, b""
        (asked,) = self._complete
        if isinstance(asked, HttpRequest):
            self._known_count = 0
            if self._is_granted:
                self._server.calls.remember(fresh, asked)
            return
        self._known_count += 1
        if self._known_count < self._patience or self._transport.get_write_buffer_size():
            return
        lending = self._server.lending
        if not lending.knows(fresh) and (found := self._server.calls.standing(asked)):
            standing, response = found
            lending.keep(fresh, response, standing)
        if lending.knows(fresh):
            self._lend()

    def _lend(self) -> None:
        """Have the native core answer what comes next."""
        file = self._transport.get_extra_info("socket").fileno()
        try:
            self._loan = self._server.lending.lend(file, self._take_back)
        except RuntimeError:
            self._patience = PATIENCE_MAX
        else:
            self._transport.pause_reading()

    def _take_back(self, is_known: bool, unsent: bytes) -> None:  # noqa: FBT001
        """What comes next is read here again."""
        self._loan = self._known_count = 0
        if not is_known:
            self._patience = min(2 * self._patience, PATIENCE_MAX)
        if self._is_ending or self._transport.is_closing():
            return
        if unsent:
            self._transport.write(unsent)
        if not self._is_choked:
            self._transport.resume_reading()
        if self._is_draining:
            self.drain()

    def _recall(self) -> bool:
        """Take a connection back that is lent; False if it will come back by itself."""
        if self._loan and self._server.lending.recall(self._loan):
            self._loan = 0
        return not self._loan

    def _read(self, data: bytes) -> None:
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

    def _declined(self, rest: memoryview) -> memoryview:
        """A request that offers to speak another protocol, as one that does not.

        The parser takes such a request to end with its head, and `rest` to be of that protocol.
        """
        method, version = self._parser.get_method(), self._parser.get_http_version()
        if self._refusal is not None or method == b"CONNECT":
            self._refuse(400, "the protocol cannot be changed")
            return memoryview(b"")
        said = self._headers
        said.pop("upgrade", None)
        said["connection"] = "close" if "close" in said["connection"].lower() else "keep-alive"
        lines = [f"{name}: {value}" for name, value in said.items()]
        head = b"%s %s HTTP/%s\r\n" % (method, self._target, version.encode())
        self._parser = httptools.HttpRequestParser(self)
        return memoryview(head + "\r\n".join([*lines, "", ""]).encode("latin-1") + rest)

    def pause_writing(self) -> None:
        """The client is slow to read."""
        self._is_choked = True
        self._start_timer()

    def resume_writing(self) -> None:
        """It has read."""
        self._is_choked = False
        self._stop_timer()
        self._go_on()
        if self._is_draining:
            self.drain()

    def drain(self) -> None:
        """End once the requests that have begun are answered."""
        self._is_draining = True
        if not self._recall():
            return
        if not (self._is_receiving or self._is_answering or self._waiting or self._is_choked):
            self._transport.close()

    def abort(self) -> None:
        """End now."""
        self._recall()
        self._transport.abort()

    def on_message_begin(self) -> None:
        """The parser found the first bytes of a request."""
        self._clear()
        self._is_receiving = True
        self._start_timer()

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
        said = self._headers.get("content-length", "0")
        if not said.isdigit() or int(said) > self._server.limits.body_bytes_max:
            self._refuse_body()
        elif self._headers.get("expect", "").lower() == "100-continue" and not self._is_answering:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """The parser found a piece of the body."""
        if self._refusal is not None:
            return
        if len(self._body) + len(body) > self._server.limits.body_bytes_max:
            self._refuse_body()
        else:
            self._body += body

    def on_message_complete(self) -> None:
        """The parser found the end of a request."""
        if self._parser.should_upgrade():
            return
        self._is_receiving = False
        if not self._is_choked:
            self._stop_timer()
        if self._refusal is not None:
            return
        method = self._parser.get_method().decode("latin-1")
        target = self._target.decode("latin-1")
        request = HttpRequest(method, target, self._headers, self._body)
        is_recent = self._parser.get_http_version() != "1.0"  # else it would want to be told
        is_kept = is_recent and self._parser.should_keep_alive()
        self._complete.append(request)
        self._waiting.append((request, is_kept))
        self._next()

    def _counted(self, piece: bytes) -> bytes:
        self._head_bytes += len(piece)
        if self._head_bytes <= self._server.limits.head_bytes_max:
            return piece
        limit = self._server.limits.head_bytes_max
        self._refuse(431, f"the request has more than {limit} bytes of headers")
        return b""

    def _refuse_body(self) -> None:
        limit = self._server.limits.body_bytes_max
        self._refuse(413, f"the body of a request may have {limit} bytes")

    def _refuse(self, status: int, message: str) -> None:
        """Remember what is wrong with the bytes: they are not understood from here on."""
        if self._refusal is None:
            self._refusal = error_response(status, message)

    def _end_if_refused(self) -> None:
        """Say why, once the requests before have been answered."""
        if self._refusal is None or self._is_answering or self._waiting or self._is_ending:
            return
        self._server.log.refused(self._client, "what came", str(self._refusal.parts[0], "utf-8"))
        self._write(self._refusal, is_kept=False)

    def _next(self) -> None:
        """Answer the request that waits longest."""
        while self._waiting and not (self._is_answering or self._is_choked or self._is_ending):
            if self._transport.is_closing():
                return  # nobody reads it
            asked, is_kept = self._waiting.popleft()
            if self._server.calls.is_long(asked):
                self._answer_beside(asked, is_kept=is_kept)
            else:
                self._write(self._respond(asked), is_kept=is_kept)

    def _go_on(self) -> None:
        """Answer what waits, then read more."""
        self._next()
        if not (self._is_answering or self._is_choked or self._is_ending):
            self._transport.resume_reading()
            self._end_if_refused()

    def _respond(self, asked: Asked) -> HttpResponse:
        """The response to a request; in whatever thread."""
        said = (self._client, f"{asked.method} {asked.target}")
        try:
            response = self._server.calls.respond(asked)
        except Exception:  # noqa: BLE001 - a mistake of ours, of which a client is told no more
            self._server.log.failed(*said)
            return error_response(500, "internal error")
        if response.status >= 400 and response.parts:
            self._server.log.refused(*said, str(response.parts[0], "utf-8"))
        return response

    def _answer_beside(self, asked: Asked, *, is_kept: bool) -> None:
        self._is_answering = True
        future = self._loop.run_in_executor(self._server.executor, self._respond, asked)

        def answered(done: asyncio.Future[HttpResponse]) -> None:
            self._is_answering = False
            if self._is_ending or done.cancelled():
                return
            self._write(done.result(), is_kept=is_kept)
            self._go_on()
            self._settle()

        future.add_done_callback(answered)

    def _write(self, response: HttpResponse, *, is_kept: bool) -> None:
        self._is_granted = response.status < 400
        is_last = self._is_draining and not (self._waiting or self._is_receiving)
        is_kept = is_kept and not is_last
        head = response.head + (b"\r\n" if is_kept else b"Connection: close\r\n\r\n")
        pieces = (head, *(response.parts if response.has_body else ()))
        if sum(memoryview(piece).nbytes for piece in pieces) <= JOINED_BYTES_MAX:
            self._transport.write(b"".join(pieces))
        else:
            for piece in pieces:
                self._transport.write(piece)
        if not is_kept:
            self._end()

    def _end(self) -> None:
        """Say no more, and let the client finish its sentence."""
        self._is_ending = True
        self._waiting.clear()
        self._stop_timer()
        if self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()
        patience_s = self._server.limits.transfer_s if self._is_choked else LINGER_S
        self._timer = self._loop.call_later(patience_s, self._transport.abort)
        self._transport.resume_reading()

    def _start_timer(self) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(self._server.limits.transfer_s, self._is_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _is_late(self) -> None:
        if self._is_choked:
            self.abort()
        elif self._is_answering:
            self._start_timer()
        else:
            self._refuse(408, "the request did not come in time")
            self._end_if_refused()
