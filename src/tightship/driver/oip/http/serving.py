"""HTTP server: uvicorn on an event loop in a thread, started and ended with the driver."""

import asyncio
import logging
import socket
import threading
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

import uvicorn

from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.http.application import HttpApplication
from tightship.driver.oip.http.browsers import AllowedOrigins, is_loopback
from tightship.driver.oip.http.calls import HttpCalls
from tightship.driver.oip.http.connection import HttpConnection, Shared
from tightship.driver.oip.http.message import error_response
from tightship.driver.oip.http.places import Places
from tightship.driver.oip.limits import EndpointLimits
from tightship.driver.oip.monitor import Monitor
from tightship.driver.server.accepting import Acceptor, Shortage
from tightship.driver.threads import Threads
from tightship.errors import InputError

AT_ONCE = 64
"""Connections accepted in one step of the event loop."""
STUCK_S = 0.05
"""Seconds between attempts to accept a client for which no descriptor is left."""
EXTRA = 64
"""Connections beyond those with places, which wait for one or are being refused."""


class HttpEntrance:
    """Accepts connections on the event loop.

    Servers of asyncio and uvloop know no reserve of descriptors, and log a traceback for each
    attempt to accept without one.
    """

    def __init__(self, listener: socket.socket, server: "ReservingServer") -> None:
        """Take over a listening socket."""
        listener.settimeout(0)
        self._server = server
        self._open_max = 2 * server.connections_max + EXTRA
        full = error_response(503, "too many connections are open or ending; try again later")
        self._farewell = full.last_words
        self._acceptor = Acceptor(listener, "HTTP", farewell=self._farewell)
        self._crowd = Shortage(f"{self._open_max} connections by HTTP are open, waiting or ending")
        self._loop = asyncio.get_running_loop()
        self._arriving = set[asyncio.Task[Any]]()

    def open(self) -> None:
        """Begin to accept."""
        self._loop.add_reader(self._acceptor.fileno(), self._accept)

    def close(self) -> None:
        """Stop accepting."""
        self._crowd.end()
        if self._acceptor.fileno() >= 0:
            self._loop.remove_reader(self._acceptor.fileno())
            self._acceptor.close()

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            accepted = self._acceptor.admit()
            if accepted is None:
                break
            if self._server.connection_count + len(self._arriving) >= self._open_max:
                self._refuse(accepted)
            else:
                self._crowd.end_if_calm()
                self._begin(accepted)
        if self._acceptor.is_stuck:
            self._loop.remove_reader(self._acceptor.fileno())
            self._loop.call_later(STUCK_S, self._open_again)

    def _open_again(self) -> None:
        if self._acceptor.fileno() >= 0:
            self.open()

    def _begin(self, accepted: socket.socket) -> None:
        accepted.settimeout(0)
        task = self._loop.create_task(
            self._loop.connect_accepted_socket(self._server.connection, accepted)
        )
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    def _refuse(self, accepted: socket.socket) -> None:
        self._crowd.refused()
        with accepted:
            try:
                accepted.send(self._farewell, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except OSError:
                return


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
        app: HttpApplication,
        limits: EndpointLimits,
        listener: socket.socket,
        places: Places,
        shared: Shared,
    ) -> None:
        """Serve an application at a listening socket, within the running loop."""
        config = uvicorn.Config(
            app,
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
        self._limits, self._listener, self._places = limits, listener, places

    @property
    def connections_max(self) -> int:
        """Most connections with places."""
        return self._limits.connections_max

    @property
    def connection_count(self) -> int:
        """Connections that are open, waiting for a place, or ending."""
        return len(self.server_state.connections)

    def connection(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        found: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state={}
        )
        return found

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002
        """Begin to accept."""
        self._entrance = HttpEntrance(self._listener, self)
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
        self._entrance.close()
        connections: Any = self.server_state.connections
        for connection in tuple(connections):
            connection.shutdown()
        try:
            await asyncio.wait_for(self._wait_tasks_to_complete(), self._limits.drain_s)
        except TimeoutError:
            for connection in tuple(connections):
                connection.abort()
            await self._wait_tasks_to_complete()


class HttpServer:
    """Answers HTTP requests once it is started.

    Attributes:
        port: Port that it listens at.
    """

    def __init__(
        self,
        endpoint: InferenceEndpoint,
        limits: EndpointLimits,
        address: tuple[str, int],
        monitor: Monitor,
        host_names: frozenset[str] = frozenset(),
    ) -> None:
        """Listen at an address.

        Args:
            endpoint: Inference endpoint.
            limits: Limits on clients.
            address: Host and port; port 0 is any free one.
            monitor: Contents of the page.
            host_names: Names by which browsers may reach the server, besides addresses and
                `localhost`.

        Raises:
            InputError: The address is not available.
        """
        host, port = address
        origins = AllowedOrigins(is_loopback(host), host_names)
        self._calls = HttpCalls(endpoint, limits.body_bytes_max, monitor, origins=origins)
        self._monitor, self._limits = monitor, limits
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._listener = socket.create_server((host, port), family=family)
        except OSError as error:
            where, why = f"{host}:{port}", error.strerror
            raise InputError(
                f"The HTTP endpoint cannot listen at `{where}`: {why}; name another."
            ) from None
        self.port: int = self._listener.getsockname()[1]
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
        limits = self._limits
        with (
            Threads(limits.connections_max, "tightship-http") as executor,
            Threads(LOADS_MAX, "tightship-load") as loaders,
        ):
            app = HttpApplication(self._calls, limits.body_bytes_max, executor, loaders)
            places = Places(limits)
            shared = Shared(app, limits, places)
            server = ReservingServer(app, limits, self._listener, places, shared)
            server.ended = self._ended
            await server.serve()
            shared.hang_ups.close()
            executor.shutdown(cancel_futures=True)
            loaders.shutdown(cancel_futures=True)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop of uvloop, or of asyncio where that is not installed."""
    try:
        uvloop: Any = import_module("uvloop")
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
