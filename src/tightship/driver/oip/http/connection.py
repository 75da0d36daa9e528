"""HTTP connection on uvicorn: who may stay, how long each part may take, and what is refused."""

import asyncio
from collections import deque
from time import monotonic_ns
from typing import Any

from tightship.driver.oip.http.cycle import HELD_BYTES_MAX, Cycle, cycle_of, watch_of
from tightship.driver.oip.http.deadline import Deadline
from tightship.driver.oip.http.eager import Steps, begun
from tightship.driver.oip.http.known_requests import RequestBytes
from tightship.driver.oip.http.message import HttpResponse, error_response
from tightship.driver.oip.http.places import Removable, Stage
from tightship.driver.oip.http.reading import ReadingProtocol
from tightship.driver.oip.http.scope import GONE, HOLDS, VIEWS, WHOLE
from tightship.driver.oip.http.shared_state import Shared
from tightship.driver.oip.http.transports import Flow, end_now, file_of, has_unread
from tightship.driver.oip.limits import UNREAD_NS

LINGER_S = 5.0
"""Seconds that a refused client may go on sending, so that it gets to read the reason."""
BODY_BYTES_PER_S = 16 << 10
"""Rate below which a connection that sends a body may be closed to make room."""


class HttpConnection(ReadingProtocol):
    """Connection whose requests are answered one at a time, in order.

    At most one request, or 64 KiB of one, is read while another is answered, and the next is begun
    once the client has accepted the response before, so that no client can fill memory.
    """

    def __init__(self, shared: Shared, **given: Any) -> None:  # noqa: ANN401  of uvicorn
        """Use state that connections share, and that of uvicorn's server."""
        super().__init__(shared.limits.head_bytes_max, **given)
        self._shared = shared
        self._latest: Cycle
        self._running: Cycle | None = None
        self._waiting: deque[Cycle] = deque()
        self._deadline = Deadline(self.loop, self._is_late)
        self._is_receiving = self._has_begun = False
        self._is_ending = self._is_draining = self._is_starting = False
        self._used_ns = self._begun_ns = monotonic_ns()
        self._received_bytes, self._watched = 0, -1
        self._early = b""
        self._bytes = RequestBytes()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Request a place; nothing is read before it is granted."""
        super().connection_made(transport)
        self.flow = self._flow = Flow(transport)
        host, port = self.client or ("gone", 0)
        self.peer: str = host
        self._name = f"http:{host}:{port}"
        self._flow.is_held = not self._shared.places.enter(self)

    def admitted(self) -> None:
        """Begin to read, on the place that was granted."""
        self._flow.is_held = False
        self._used_ns = monotonic_ns()
        self._flow.resume_reading()
        # Later, so that the client that has made room hears of it before this one is answered.
        self.loop.call_soon(self._read_early)

    def _read_early(self) -> None:
        early, self._early = self._early, b""
        if early and not self._is_ending:
            self.data_received(early)

    def turned_away(self) -> None:
        """Refuse the client, as there is no place."""
        count, self._early = self._shared.limits.connections_max, b""
        self._flow.is_held = False  # what comes now is dropped
        self.refuse(
            503,
            f"all {count} connections are busy; try again later, or start the server with a "
            "larger `--max-connections`",
        )
        self._end_if_refused()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release what the connection holds; a reply under way is dropped."""
        self._is_ending = True
        self._deadline.close()
        self._unwatch()
        self._waiting.clear()
        if self._running is not None:
            self._running.disconnect()
            self._running = None
        super().connection_lost(exc)
        self.cycle = self._latest = None  # type: ignore[assignment]
        self._shared.places.leave(self)

    def data_received(self, data: bytes) -> None:
        """Process bytes of one or several requests."""
        if self._flow.is_held or self._early:
            self._early += data
            if self._flow.is_held:  # pausing a transport before it begins to read has no effect
                self._flow.read_paused = True
                self.transport.pause_reading()
            return
        if self._bytes.head:
            data, self._is_receiving = self._bytes.with_head(data), False
        if self._is_known(data):
            return
        self._received_bytes += len(data)
        self.feed(data)
        self._end_if_refused()

    def is_over(self) -> bool:
        """Whether further bytes are ignored."""
        return self._is_ending or self._refusal is not None

    def _is_known(self, data: bytes) -> bool:
        """Answer bytes that have been a request before, without parsing them again.

        A client that keeps its tensors in shared memory sends the same bytes each time.
        """
        # Without calls, as most requests of a client that repeats itself come this way.
        is_shut = self._is_ending or self._is_draining or self._refusal is not None
        is_busy = self._is_receiving or self._running or self._waiting or self._flow.write_paused
        if is_shut or is_busy or self.transport.is_closing():
            is_its = self._is_receiving and self._running is None
            self._bytes.go_on(data if is_its else b"")
            return False
        self._bytes.begin(data)
        response = self._shared.app.again(data, self.peer, self._name)
        if response is None:
            return self._is_known_head(data)
        self._deadline.drop()
        self._used_ns = monotonic_ns()
        self.transport.write(response.whole)
        return True

    def _is_known_head(self, data: bytes) -> bool:
        """Keep the head of a known request until its body comes."""
        if not self._shared.app.known.begin_with(data):
            return False
        self._bytes.head, self._is_receiving, self._has_head = data, True, True
        self._begun_ns, self._received_bytes = monotonic_ns(), len(data)
        self._deadline.set(self._shared.limits.transfer_s)
        return True

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        limits = self._shared.limits
        self._is_receiving = True
        self._begun_ns, self._received_bytes = monotonic_ns(), 0
        self._deadline.set(min(limits.head_s, limits.transfer_s))

    def on_headers_complete(self) -> None:
        """Begin to answer a request whose body is large, or awaited."""
        super().on_headers_complete()
        if self.is_ignored():
            return
        self._deadline.set(self._shared.limits.transfer_s)
        extensions: dict[str, Any] = {VIEWS: {}}
        self.scope["extensions"] = extensions
        # HTTP/1.0 clients expect a keep-alive header, which is not sent.
        is_kept = self.scope["http_version"] != "1.0" and self.parser.should_keep_alive()
        self.cycle = self._latest = cycle_of(self, keep_alive=is_kept)
        extensions[GONE] = watch_of(self._latest)
        self._has_begun = False
        if self.expect_100_continue or self._is_large():
            self._begin()

    def _is_large(self) -> bool:
        """Whether the body is said to be larger than what may wait for the application."""
        length = next((value for name, value in self.headers if name == b"content-length"), b"0")
        return len(length) > 15 or int(length) > HELD_BYTES_MAX

    def _begin(self) -> None:
        """Answer a request, or put it behind those that are answered.

        Requests with small bodies begin when they are whole.
        """
        self._has_begun = True
        if self._is_ending or self.transport.is_closing():
            return  # a reply would not be read
        if self._running or self._waiting or self._flow.write_paused:
            self._flow.pause_reading()
            self.watch()
            self._waiting.append(self._latest)
        else:
            self._start(self._latest)

    def _start(self, cycle: Cycle) -> None:
        """Answer at once; only a call that has to wait becomes a task of the loop."""
        self._running, self._is_starting = cycle, True
        self._advance(cycle.run_asgi(self.app))
        self._is_starting = False

    def _advance(self, steps: Steps) -> None:
        task = begun(self.loop, steps, self._advance)
        if task is not None:
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)

    def on_body(self, body: bytes) -> None:
        """Pass a piece of the body on."""
        if self.is_ignored() or self._latest.response_complete:
            return
        self._latest.add(body)
        if self._latest.held_bytes > HELD_BYTES_MAX:
            if not self._has_begun:
                self._begin()
            self._flow.pause_reading()

    def on_message_complete(self) -> None:
        """Note that a request is whole."""
        if self.is_ignored():
            return
        self._is_receiving = False
        if not self._flow.write_paused:
            self._deadline.drop()
        self._latest.end_body()
        if not self.expect_100_continue and self._latest.is_all(self._bytes.whole):
            self.scope["extensions"][WHOLE] = {"bytes": self._bytes.whole}
        if not self._has_begun:
            self.scope["extensions"][HOLDS] = {}
            self._begin()

    def on_response_complete(self) -> None:
        """Begin the next request, or end the connection."""
        cycle, self._running = self._running, None
        self.server_state.total_requests += 1
        self._used_ns = monotonic_ns()
        self._unwatch()
        if self._is_ending or cycle is None:
            return
        if not cycle.keep_alive:
            self._end()
        elif not self._is_starting:  # otherwise the caller goes on
            self._go_on()

    def _go_on(self) -> None:
        while self._waiting and not (self._running or self._flow.write_paused or self._is_ending):
            if self.transport.is_closing():
                return
            self._start(self._waiting.popleft())
        if not (self._waiting or self._running):
            self._flow.resume_reading()
        self._end_if_refused()

    @property
    def _is_answering(self) -> bool:
        """Whether a whole request is being answered."""
        return self._running is not None and not self._running.more_body

    @property
    def _is_busy(self) -> bool:
        """Whether a request or a reply is under way."""
        is_choked = self._flow.write_paused
        return bool(
            self._is_receiving or self._running or is_choked or self._waiting or self._early
        )

    def read_on(self) -> None:
        """Implement `Channel`."""
        if not self._waiting:
            self._flow.resume_reading()

    def watch(self) -> None:
        """Implement `Channel`."""
        if self._watched < 0 and not self._is_ending:
            self._watched = file_of(self.transport)
            self._shared.hang_ups.watch(self._watched, self.abort)

    def _unwatch(self) -> None:
        if self._watched >= 0:
            self._shared.hang_ups.unwatch(self._watched)
            self._watched = -1

    def is_kept(self) -> bool:
        """Implement `Channel`."""
        return not self._is_draining or bool(self._waiting) or self._is_receiving

    def removable(self) -> Removable | None:
        """Implement `Occupant`."""
        is_ending = self._is_ending or self.transport.is_closing()
        if is_ending or self._is_draining or self._refusal or self._early:
            return None
        is_unread = not self._is_busy and self.transport.get_write_buffer_size()
        if self._flow.write_paused or is_unread:
            return Stage.SLOW, self._used_ns + UNREAD_NS
        if self._is_answering or self._waiting:
            return None
        if self._is_receiving and self._has_head:
            granted_ns = 1_000_000_000 * (1 + self._received_bytes / BODY_BYTES_PER_S)
            return Stage.SLOW, self._begun_ns + int(granted_ns)
        return (Stage.HEAD, self._begun_ns) if self._is_receiving else (Stage.IDLE, self._used_ns)

    def vacate(self) -> bool:
        """Implement `Occupant`."""
        removable = self.removable()
        if removable is None or (has_unread(self.transport) and not self._flow.write_paused):
            return False
        if removable[0] is Stage.IDLE:
            end_now(self.transport)
        else:
            self._say_late("the connection was needed for others, and the request came too slowly")
        self._is_ending = True
        self._deadline.drop()
        has_more = self.transport.get_write_buffer_size()
        (self.transport.abort if has_more else self.transport.close)()
        return True

    def _say_late(self, why: str) -> None:
        """Refuse the rest of a request, if the client may still read the reason."""
        response = error_response(408, why)
        self._log(response)
        if self._is_receiving and not self.transport.get_write_buffer_size():
            self.transport.write(response.last_words)

    def _log(self, refusal: HttpResponse) -> None:
        self._shared.app.log.refused(self._name, "what came", str(refusal.parts[0], "utf-8"))

    def pause_writing(self) -> None:
        """Note that the client reads slowly, and read nothing further of it."""
        super().pause_writing()
        self._flow.pause_reading()
        self._deadline.set(self._shared.limits.transfer_s)

    def resume_writing(self) -> None:
        """Note that the client has read."""
        super().resume_writing()
        self._used_ns = monotonic_ns()
        if self._is_ending:
            return
        self._deadline.drop()
        if self._running is None:
            self._go_on()
        if self._is_draining:
            self.shutdown()

    def shutdown(self) -> None:
        """Close the connection once the requests that have begun are answered."""
        self._is_draining = True
        if not (self._is_busy or self._is_ending):
            self.transport.close()

    def abort(self) -> None:
        """Close the connection at once, and have its inference abandoned."""
        if self._running is not None:
            self._running.disconnect()
        self.transport.abort()

    def _end_if_refused(self) -> None:
        """Send a refusal once earlier requests are answered."""
        if self._refusal is None or self._is_answering or self._waiting or self._is_ending:
            return
        if self._running is not None:
            self._running.disconnect()
            self._running = None
        self._log(self._refusal)
        if not self.transport.is_closing():  # uvloop raises an error for one that is
            self.transport.write(self._refusal.last_words)
        self._end()

    def _end(self) -> None:
        """Close our side, and let the client finish sending."""
        self._is_ending = True
        is_choked = self._flow.write_paused
        if not is_choked:
            self._shared.places.leave(self)
        self._waiting.clear()
        self._deadline.drop()
        if self.transport.is_closing():
            return
        try:
            self.transport.write_eof()
        except (OSError, NotImplementedError):
            # The client has reset the connection, unnoticed so far, or TLS has no such end.
            self.transport.close()
            return
        patience_s = self._shared.limits.transfer_s if is_choked else LINGER_S
        self._deadline.set(patience_s)
        self.transport.resume_reading()

    def _is_late(self) -> None:
        if self._is_ending or self._flow.write_paused:
            self.abort()
        elif self._is_answering:
            self._deadline.set(self._shared.limits.transfer_s)
        else:
            self.refuse(408, "the request did not come in time")
            self._end_if_refused()
