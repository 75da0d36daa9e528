"""HTTP server: uvicorn on an event loop in a thread, started and ended with the driver."""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

import uvicorn

from tightship.driver.oip.admission.gate import OPEN_ENTRY, Entry
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.http.application import HttpApplication
from tightship.driver.oip.http.browsers import AllowedOrigins, is_loopback
from tightship.driver.oip.http.calls import HttpCalls
from tightship.driver.oip.http.connection import HttpConnection
from tightship.driver.oip.http.entrance import HttpEntrance
from tightship.driver.oip.http.logged import LoggedApplication
from tightship.driver.oip.http.places import Places
from tightship.driver.oip.http.scope import ASGI
from tightship.driver.oip.http.shared_state import Shared
from tightship.driver.oip.limits import EndpointLimits
from tightship.driver.oip.monitor import Monitor
from tightship.driver.oip.queued_calls import QueuedCalls
from tightship.driver.oip.refusal_log import RefusalLog
from tightship.driver.threads import Threads
from tightship.errors import InputError

IDLE_CHECK_S = 60.0
"""Most seconds between checks for idle connections."""

LOADS_MAX = 4
"""Models that are loaded or unloaded at once."""


class ReservingServer(uvicorn.Server):
    """Server of uvicorn that accepts connections itself, and sleeps while nothing happens.

    Attributes:
        ended: Set to end the server.
    """

    def __init__(
        self,
        entry: Entry,
        limits: EndpointLimits,
        listener: socket.socket,
        shared: Shared,
    ) -> None:
        """Serve an application at a listening socket, within the running loop.

        Args:
            entry: Rules for clients.
            limits: Limits on clients.
            listener: The socket.
            shared: State of the connections, with the application.
        """
        config = uvicorn.Config(
            LoggedApplication(shared.app, entry.sinks) if entry.sinks else shared.app,
            http=partial(HttpConnection, shared),  # type: ignore[arg-type]
            interface="asgi3",
            lifespan="off",
            ws="none",
            log_config=None,
            log_level=logging.WARNING,
            proxy_headers=False,
            server_header=False,
            date_header=False,
        )
        config.load()
        super().__init__(config)
        self.servers = []
        self.ended = asyncio.Event()
        self._limits, self._listener, self._places = limits, listener, shared.places
        self._certificate, self._log = entry.certificate, shared.app.log

    @property
    def connections_max(self) -> int:
        """Most connections with places."""
        return self._limits.connections_max

    @property
    def connection_count(self) -> int:
        """Connections that are open, waiting for a place, or ending."""
        return len(self.server_state.connections)

    @property
    def handshake_s(self) -> float:
        """Seconds in which the handshake of TLS must end."""
        return self._limits.head_s

    @property
    def log(self) -> RefusalLog:
        """Log of refused clients."""
        return self._log

    def connection(self) -> HttpConnection:
        """Return the protocol of a new connection."""
        made: HttpConnection = self.config.http_protocol_class(  # type: ignore[call-arg,assignment]
            config=self.config, server_state=self.server_state, app_state={}
        )
        return made

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002
        """Begin to accept."""
        self._entrance = HttpEntrance(self._listener, self, self._certificate)
        self._entrance.open()
        self.started = True

    async def main_loop(self) -> None:
        """Close idle connections until the server is to end."""
        interval_s = min(self._limits.idle_s / 4, IDLE_CHECK_S)
        while not self.ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), interval_s)
            self._places.end_idle()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002
        """Wait for requests that have begun; abort those that take too long."""
        await self._entrance.close()
        connections: Any = self.server_state.connections
        for connection in tuple(connections):
            connection.shutdown()
        try:
            await asyncio.wait_for(self._wait_tasks_to_complete(), self._limits.drain_s)
        except TimeoutError:
            for connection in tuple(connections):
                connection.abort()
            await self._wait_tasks_to_complete()


TextsMaker = Callable[[int, Executor, AllowedOrigins, RefusalLog], ASGI]
"""Makes an application of the largest body, threads, allowed origins and the log."""


class HttpServer:
    """Answers HTTP requests once it is started.

    Attributes:
        port: Port that it listens at.
    """

    def __init__(
        self,
        endpoint: InferenceEndpoint,
        limits: EndpointLimits,
        address: tuple[str, int] | socket.socket,
        monitor: Monitor,
        entry: Entry = OPEN_ENTRY,
    ) -> None:
        """Listen at an address.

        Args:
            endpoint: Inference endpoint.
            limits: Limits on clients.
            address: Host and port, where port 0 is any free one; or a socket that listens.
            monitor: Contents of the page.
            entry: Rules for clients.

        Raises:
            InputError: The address is not available.
        """
        self._listener = address if isinstance(address, socket.socket) else _listener(*address)
        host: str = self._listener.getsockname()[0]
        self.port: int = self._listener.getsockname()[1]
        origins = AllowedOrigins(is_loopback(host), entry.host_names)
        self._calls = HttpCalls(endpoint, limits.body_bytes_max, monitor, origins=origins)
        self._monitor, self._limits, self._entry = monitor, limits, entry
        self.texts: TextsMaker | None = None
        """Makes the application that answers below `/v1/`; None for none."""
        self._origins, self._permits = origins, endpoint.permits
        self._loop = new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="tightship-http")

    def start(self) -> None:
        """Begin to answer."""
        self._monitor.start()
        self._thread.start()

    def discard(self) -> None:
        """Stop listening; for a server that was not started."""
        self._listener.close()
        self._loop.close()

    def begin_stop(self) -> None:
        """Accept no more connections, and answer what has begun within the limits."""
        self._loop.call_soon_threadsafe(self._ended.set)

    def join(self) -> None:
        """Wait for the last thread."""
        self._thread.join()
        self._monitor.stop()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        limits, entry = self._limits, self._entry
        with (
            Threads(limits.connections_max, "tightship-http") as executor,
            Threads(LOADS_MAX, "tightship-load") as loaders,
        ):
            calls, bytes_max = self._calls, limits.body_bytes_max
            queue = QueuedCalls(self._permits)
            app = HttpApplication(calls, bytes_max, executor, loaders, entry.gate, queue)
            if self.texts is not None:
                app.texts = self.texts(bytes_max, executor, self._origins, app.log)
            shared = Shared(app, limits, Places(limits))
            server = ReservingServer(entry, limits, self._listener, shared)
            server.ended = self._ended
            await server.serve()
            shared.hang_ups.close()
            queue.close()
            executor.shutdown(cancel_futures=True)
            loaders.shutdown(cancel_futures=True)


def _listener(host: str, port: int) -> socket.socket:
    """Listen at an address.

    Raises:
        InputError: The address is not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        where, why = f"{host}:{port}", error.strerror
        raise InputError(
            f"The HTTP endpoint cannot listen at `{where}`: {why}; name another."
        ) from None


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop of uvloop, or of asyncio where that is not installed."""
    try:
        uvloop: Any = import_module("uvloop")
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
