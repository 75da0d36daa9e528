"""HTTP connection: requests are read and answered one at a time."""

import asyncio
import struct
from collections import deque
from concurrent.futures import Executor
from dataclasses import dataclass, field
from fcntl import ioctl
from termios import FIONREAD
from time import monotonic_ns

from tightship.driver.oip.hang_ups import HangUps
from tightship.driver.oip.http.calls import Asked, HttpCalls, changes_models
from tightship.driver.oip.http.lending import Lending
from tightship.driver.oip.http.loan import Loan
from tightship.driver.oip.http.message import HttpRequest, HttpResponse, error_response
from tightship.driver.oip.http.places import Places, Removable, Stage
from tightship.driver.oip.http.reading import RequestReader
from tightship.driver.oip.limits import UNREAD_NS, EndpointLimits
from tightship.driver.oip.refusal_log import RefusalLog

LINGER_S = 5.0
"""Seconds that a refused client may go on sending, so that it gets to read the reason."""
BODY_BYTES_PER_S = 16 << 10
"""Rate below which a connection that sends a body may be closed to make room."""
JOINED_BYTES_MAX = 64 << 10
"""Responses up to this size are written as one piece."""


@dataclass(slots=True, eq=False)
class Shared:
    """State common to the connections of a server.

    Attributes:
        executor: Threads that run models, or wait for a permit: one for each connection.
        loaders: Threads that load and unload models, apart so that runs need not wait.
        hang_ups: Watches clients that wait for such a reply.
    """

    calls: HttpCalls
    limits: EndpointLimits
    executor: Executor
    loaders: Executor
    lending: Lending
    log: RefusalLog
    places: Places
    connections: "set[HttpConnection]" = field(default_factory=set)
    is_empty: asyncio.Event = field(default_factory=asyncio.Event)
    hang_ups: HangUps = field(default_factory=HangUps)


class HttpConnection(asyncio.Protocol):
    """State of a connection; everything but replies happens on the event loop.

    Nothing is read while a call is answered, and the next reply begins once the client has accepted
    the one before, so that no client can fill memory.
    """

    def __init__(self, server: Shared) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._reader = RequestReader(server.limits, self)
        self._waiting: deque[tuple[Asked, bool]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._refusal: HttpResponse | None = None
        self._is_answering = self._is_receiving = self._is_choked = self._has_head = False
        self._is_ending = self._is_draining = self._is_granted = self._has_place = False
        self._used_ns = self._begun_ns = monotonic_ns()
        self._received_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Request a place; nothing is read before it is granted."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        host, port, *_ = transport.get_extra_info("peername") or ("gone", 0)
        self.peer: str = host
        self._client = f"http:{host}:{port}"
        server, self._file = self._server, -1
        self._caller = server.calls.caller(host, self._client)
        self._loan = Loan(server.calls, server.lending, self._caller, self._go_on_after)
        self._server.connections.add(self)
        self._server.is_empty.clear()
        self._has_place = self._server.places.enter(self)
        if not self._has_place:  # later: Python 3.11.2 begins to read behind this, paused or not
            self._loop.call_soon(self._wait_for_place)

    def _wait_for_place(self) -> None:
        if not self._has_place:
            self._transport.pause_reading()

    def admitted(self) -> None:
        """Begin to read, on the place that was granted."""
        self._has_place = True
        self._used_ns = monotonic_ns()
        self._transport.resume_reading()

    def turned_away(self) -> None:
        """Refuse the client, as there is no place."""
        count = self._server.limits.connections_max
        self.refuse(
            503,
            f"all {count} connections are busy; try again later, or start the server with a "
            "larger `--max-connections`",
        )
        self._end_if_refused()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Release what the connection holds; a reply under way is dropped."""
        self._is_ending = True
        self._waiting.clear()
        self._stop_timer()
        self._caller.leave()
        self._server.hang_ups.unwatch(self._file)
        self._loan.end()
        self._reader.close()
        self._server.places.leave(self)
        self._server.connections.discard(self)
        if not self._server.connections:
            self._server.is_empty.set()

    def data_received(self, data: bytes) -> None:
        """Process bytes of one or several requests."""
        if self._is_ending:
            return
        self._received_bytes += len(data)
        known = self._loan.known(data if self._is_idle else b"")
        if known is None:
            self._reader.read(data)
        else:
            self._waiting.append((known, True))
            self._next()
        if (self._is_answering or self._is_choked) and self._transport.is_reading():
            self._transport.pause_reading()
        self._end_if_refused()
        self._settle()

    @property
    def _is_idle(self) -> bool:
        """Whether no request and no reply is under way."""
        is_busy = self._is_receiving or self._is_answering or self._is_choked or self._waiting
        return not (is_busy or self._is_ending or self._is_draining or self._refusal)

    def removable(self) -> Removable | None:
        """Implement `Occupant`."""
        if self._is_idle and self._loan.is_out:
            since_ns = self._loan.idle_since_ns()
            return None if since_ns is None else (Stage.IDLE, since_ns)
        if self._is_ending or self._is_draining or self._refusal:
            return None
        if self._is_choked or (self._is_idle and self._transport.get_write_buffer_size()):
            return Stage.SLOW, self._used_ns + UNREAD_NS
        if self._is_answering or self._waiting:
            return None
        if self._is_receiving and self._has_head:
            granted_ns = 1_000_000_000 * (1 + self._received_bytes / BODY_BYTES_PER_S)
            return Stage.SLOW, self._begun_ns + int(granted_ns)
        return (Stage.HEAD, self._begun_ns) if self._is_receiving else (Stage.IDLE, self._used_ns)

    def vacate(self) -> bool:
        """Implement `Occupant`."""
        removable, was_out = self.removable(), self._loan.is_out
        if removable is None or not self._loan.recall():
            return False
        if _has_unread(self._transport) and not self._is_choked:
            if was_out:
                self._transport.resume_reading()
            return False
        if removable[0] is not Stage.IDLE:
            self._say_late("the connection was needed for others, and the request came too slowly")
        self._is_ending = True
        self._stop_timer()
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()
        return True

    def _say_late(self, why: str) -> None:
        """Refuse the rest of a request, if the client may still read the reason."""
        response = error_response(408, why)
        self._server.log.refused(self._client, "what came", str(response.parts[0], "utf-8"))
        if self._is_receiving and not self._transport.get_write_buffer_size():
            head = response.head + b"Connection: close\r\n\r\n"
            self._transport.write(head + b"".join(response.parts))

    def _settle(self) -> None:
        if self._is_idle:
            self._loan.settle(self._transport, is_granted=self._is_granted)

    def _go_on_after(self, unsent: bytes) -> None:
        """Resume reading after a loan to the native core."""
        self._used_ns = monotonic_ns()
        if self._is_ending or self._transport.is_closing():
            return
        if unsent:
            self._transport.write(unsent)
        if not self._is_choked:
            self._transport.resume_reading()
        if self._is_draining:
            self.drain()

    def pause_writing(self) -> None:
        """Note that the client reads slowly."""
        self._is_choked = True
        self._start_timer()

    def resume_writing(self) -> None:
        """Note that the client has read."""
        self._is_choked = False
        self._used_ns = monotonic_ns()
        self._stop_timer()
        self._go_on()
        if self._is_draining:
            self.drain()

    def drain(self) -> None:
        """Close the connection once the requests that have begun are answered."""
        self._is_draining = True
        if not self._loan.recall():
            return
        if not (self._is_receiving or self._is_answering or self._waiting or self._is_choked):
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once and abandon its inference."""
        self._caller.leave()
        self._loan.recall()
        self._transport.abort()

    def request_begun(self) -> None:
        """Implement `Receiver`."""
        self._is_receiving, self._has_head = True, False
        self._begun_ns, self._received_bytes = monotonic_ns(), 0
        self._start_timer(min(self._server.limits.head_s, self._server.limits.transfer_s))

    def head_came(self) -> None:
        """Implement `Receiver`."""
        self._has_head = True
        self._start_timer()

    def body_awaited(self) -> None:
        """Implement `Receiver`."""
        if not self._is_answering:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def request_came(self, request: HttpRequest, *, is_kept: bool) -> None:
        """Implement `Receiver`."""
        self._is_receiving = False
        if not self._is_choked:
            self._stop_timer()
        self._loan.note(request)
        self._waiting.append((request, is_kept))
        self._next()

    def refuse(self, status: int, message: str) -> None:
        """Implement `Receiver`: keep the refusal until earlier requests are answered."""
        if self._refusal is None:
            self._refusal = error_response(status, message)

    def _end_if_refused(self) -> None:
        """Send a refusal once earlier requests are answered."""
        if self._refusal is None or self._is_answering or self._waiting or self._is_ending:
            return
        self._server.log.refused(self._client, "what came", str(self._refusal.parts[0], "utf-8"))
        self._write(self._refusal, is_kept=False)

    def _next(self) -> None:
        while self._waiting and not (self._is_answering or self._is_choked or self._is_ending):
            if self._transport.is_closing():
                return  # a reply would not be read
            asked, is_kept = self._waiting.popleft()
            if self._server.calls.is_long(asked, self._caller):
                self._answer_beside(asked, is_kept=is_kept)
            else:
                response = self._respond(asked)
                self._caller.release()
                self._write(response, is_kept=is_kept)

    def _go_on(self) -> None:
        self._next()
        if not (self._is_answering or self._is_choked or self._is_ending):
            self._transport.resume_reading()
            self._end_if_refused()

    def _respond(self, asked: Asked) -> HttpResponse:
        """Return the response to a request; called on any thread."""
        if self._caller.stop.is_set():
            return error_response(503, "the client is gone")
        said = (self._client, f"{asked.method} {asked.target}")
        try:
            response = self._server.calls.respond(asked, self._caller)
        except Exception:  # noqa: BLE001 - an error of ours; clients get no details
            self._server.log.failed(*said)
            return error_response(500, "internal error")
        if response.status >= 400 and response.parts:
            self._server.log.refused(*said, str(response.parts[0], "utf-8"))
        return response

    def _answer_beside(self, asked: Asked, *, is_kept: bool) -> None:
        self._is_answering = True
        server = self._server
        threads = server.loaders if changes_models(asked) else server.executor
        self._file = self._transport.get_extra_info("socket").fileno()
        server.hang_ups.watch(self._file, self.abort)
        future = self._loop.run_in_executor(threads, self._respond, asked)

        def answered(done: asyncio.Future[HttpResponse]) -> None:
            self._is_answering = False
            if self._is_ending or done.cancelled():
                return
            server.hang_ups.unwatch(self._file)
            self._write(done.result(), is_kept=is_kept)
            self._go_on()
            self._settle()

        future.add_done_callback(answered)

    def _write(self, response: HttpResponse, *, is_kept: bool) -> None:
        self._is_granted = response.status < 400
        self._used_ns = monotonic_ns()
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
        """Close our side, and let the client finish sending."""
        self._is_ending = True
        if not self._is_choked:
            self._server.places.leave(self)
        self._waiting.clear()
        self._reader.discard()
        self._stop_timer()
        if self._transport.is_closing():
            return
        try:
            self._transport.write_eof()
        except OSError:  # the client has reset the connection, unnoticed by asyncio so far
            self._transport.abort()
            return
        patience_s = self._server.limits.transfer_s if self._is_choked else LINGER_S
        self._timer = self._loop.call_later(patience_s, self._transport.abort)
        self._transport.resume_reading()

    def _start_timer(self, patience_s: float | None = None) -> None:
        self._stop_timer()
        seconds = self._server.limits.transfer_s if patience_s is None else patience_s
        self._timer = self._loop.call_later(seconds, self._is_late)

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
            self.refuse(408, "the request did not come in time")
            self._end_if_refused()


def _has_unread(transport: asyncio.Transport) -> bool:
    file = transport.get_extra_info("socket").fileno()
    (count,) = struct.unpack("i", ioctl(file, FIONREAD, bytes(4)))
    return bool(count)
