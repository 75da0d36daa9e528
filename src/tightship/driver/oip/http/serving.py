"""HTTP server: an event loop in a thread, started and ended with the driver."""

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.http.browsers import AllowedOrigins, is_loopback
from tightship.driver.oip.http.calls import HttpCalls
from tightship.driver.oip.http.connection import HttpConnection, Shared
from tightship.driver.oip.http.lending import Lending
from tightship.driver.oip.http.message import error_response
from tightship.driver.oip.http.places import Places
from tightship.driver.oip.limits import EndpointLimits
from tightship.driver.oip.monitor import Monitor
from tightship.driver.oip.refusal_log import RefusalLog
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

    asyncio's own servers log a traceback for each attempt to accept without a descriptor, a hundred
    in a row, and double these attempts every second.
    """

    def __init__(self, listener: socket.socket, shared: Shared) -> None:
        """Take over a listening socket."""
        listener.settimeout(0)
        self._shared = shared
        self._open_max = 2 * shared.limits.connections_max + EXTRA
        full = error_response(503, "too many connections are open or ending; try again later")
        self._farewell = full.head + b"Connection: close\r\n\r\n" + b"".join(full.parts)
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
            if len(self._shared.connections) + len(self._arriving) >= self._open_max:
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
            self._loop.connect_accepted_socket(lambda: HttpConnection(self._shared), accepted)
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
        self._monitor, self._lending = monitor, Lending(endpoint)
        self._limits = limits
        self._runs_max = endpoint.runs_max
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._listener = socket.create_server((host, port), family=family)
        except OSError as error:
            where, why = f"{host}:{port}", error.strerror
            raise InputError(
                f"The HTTP endpoint cannot listen at `{where}`: {why}; name another."
            ) from None
        self.port: int = self._listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
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
        lending, runs_max = self._lending, self._runs_max
        with (
            Threads(self._limits.connections_max, "tightship-http") as executor,
            Threads(LOADS_MAX, "tightship-load") as loaders,
            ThreadPoolExecutor(runs_max + 1, "tightship-lent") as lenders,
        ):
            for _ in range(runs_max + 1):
                lenders.submit(lending.serve, self._loop.call_soon_threadsafe)
            places, log = Places(self._limits), RefusalLog()
            shared = Shared(self._calls, self._limits, executor, loaders, lending, log, places)
            shared.is_empty.set()
            entrance = HttpEntrance(self._listener, shared)
            entrance.open()
            await self._ending_idle(places)
            entrance.close()
            await _drain(shared)
            shared.hang_ups.close()
            executor.shutdown(cancel_futures=True)
            loaders.shutdown(cancel_futures=True)
            lending.close()
            lenders.shutdown()
            lending.forget_all()

    async def _ending_idle(self, places: Places) -> None:
        """Close idle connections until the server is to end."""
        interval_s = min(self._limits.idle_s / 4, IDLE_CHECK_S)
        while not self._ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), interval_s)
            places.end_idle()


async def _drain(shared: Shared) -> None:
    """Wait for requests that have begun; abort those that take too long."""
    for connection in tuple(shared.connections):
        connection.drain()
    try:
        await asyncio.wait_for(shared.is_empty.wait(), shared.limits.drain_s)
    except TimeoutError:
        for connection in tuple(shared.connections):
            connection.abort()
