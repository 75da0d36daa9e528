"""A driver process: one copy of each model and of each limit, behind every face it listens with."""

import logging
import os
import select
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Thread, Timer
from typing import Protocol

from tightship._core import Turns
from tightship.driver.client.client import Client
from tightship.driver.oip.face import Face
from tightship.driver.oip.limits import LIMITS, FaceLimits
from tightship.driver.oip.monitor import Monitor
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.repository import Repository, Sources
from tightship.driver.printable import printable
from tightship.driver.server.access import Access
from tightship.driver.server.heap_trimmer import HeapTrimmer
from tightship.driver.server.server import NO_ACCESS, Server
from tightship.driver.types.quota import Accounts
from tightship.driver.types.settings import USER_LIMITS
from tightship.driver.types.snapshot import Snapshot
from tightship.errors import InputError

GRACE_MAX_S = 24 * 3600.0
"""A longer time of grace is this; the kernel waits no more than 24 days at once."""

_LOG = logging.getLogger(__name__)

Address = tuple[str, int]
"""A host, and a port; 0 is any that is free."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a driver listens: at a socket, and where clients of the inference protocol come.

    Attributes:
        allow_client_shm: Whether clients of the protocol may name shared memory of this user.
        limits: What clients of the protocol may take.
        host_names: Host names of the server, besides addresses and `localhost`.
        access: Who else may connect to the socket, and files to believe in.
    """

    socket: Path
    http: Address | None = None
    grpc: Address | None = None
    allow_client_shm: bool = False
    limits: FaceLimits = LIMITS
    access: Access = NO_ACCESS
    host_names: frozenset[str] = frozenset()


class FaceServer(Protocol):
    """The server of a face, in threads of its own."""

    port: int

    def start(self) -> None:
        """Answer from now on."""
        ...

    def discard(self) -> None:
        """Listen no more, instead of `start`."""
        ...

    def begin_stop(self) -> None:
        """Take no more clients, and answer what has begun as long as the limits say."""
        ...

    def join(self) -> None:
        """Wait for the end."""
        ...


class Driver:
    """Models for other processes. Whoever reaches an address may run, load and unload them."""

    def __init__(
        self, models: Sources, where: Listening, *, threads: int = 1, secret: bytes | None = None
    ) -> None:
        """Load the models and listen; nobody is answered before `serve`.

        Args:
            models: Where they come from, by the names that clients know them by.
            where: To listen.
            threads: Runs at once, of clients of all faces.
            secret: As for `Server`.

        Raises:
            InputError: An address cannot be listened at, or a package that it needs is not there.
            OipError: None of the models can be loaded.
        """
        turns = Turns(threads)
        self._repository = Repository(models)
        accounts = Accounts(USER_LIMITS, kept={os.geteuid()})
        regions = RegionFiles(is_enabled=where.allow_client_shm, account=accounts.of(os.geteuid()))
        self._face = Face(self._repository, regions, turns)
        self._faces: dict[str, FaceServer] = {}
        self._limits = where.limits
        self._is_over = False
        with ExitStack() as undo:
            undo.callback(self._repository.close)
            self._load_all()
            if where.http is not None:
                monitor = Monitor(self._face, partial(_inspect, where.socket))
                http = self._faces["http"] = _http_server(self._face, where, monitor)
                undo.callback(http.discard)
            if where.grpc is not None:
                grpc = self._faces["grpc"] = _grpc_server(self._face, where.limits, *where.grpc)
                undo.callback(grpc.discard)
            self._native = Server(
                where.socket,
                self._repository,
                turns,
                secret=secret,
                access=replace(where.access, accounts=accounts),
            )
            self._told = os.eventfd(0)
            undo.pop_all()

    def _load_all(self) -> None:
        """Load the models that can be loaded, and log why others cannot.

        Raises:
            OipError: There are models, and none can be loaded.
        """
        failures: list[OipError] = []
        for name in self._repository.names:
            try:
                self._repository.load(name)
            except OipError as error:
                failures.append(error)
        is_useless = bool(failures) and not self._repository.ready_names
        for failure in failures[1:] if is_useless else failures:
            _LOG.error("%s", printable(str(failure)))
        if is_useless:
            raise failures[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models that are loaded."""
        return self._repository.ready_names

    @property
    def ports(self) -> dict[str, int]:
        """Where clients of the protocol come: of `http` and `grpc`, as far as they are there."""
        return {name: face.port for name, face in self._faces.items()}

    def serve(self) -> None:
        """Serve until `drain` or `stop` is called; what has begun is answered, within the limits.

        A run that goes on beyond them is left after the step that it is in.
        """
        trimmer = HeapTrimmer()
        trimmer.start()
        for face in self._faces.values():
            face.start()
        draining = Thread(target=self._drain_when_told, name="tightship-drain")
        draining.start()
        try:
            self._native.serve()
        finally:
            trimmer.stop()
            self._is_over = True  # from here on a signal writes no more
            os.eventfd_write(self._told, 1)
            draining.join()
            os.close(self._told)
            self._end()

    def _end(self) -> None:
        self._face.end()
        for face in self._faces.values():
            face.begin_stop()
        late = Timer(self._limits.drain_s, self._face.abandon)
        late.start()
        for face in self._faces.values():
            face.join()
        late.cancel()
        self._repository.close()

    def drain(self) -> None:
        """Have `serve` return after `grace_s` of the limits, in which nothing is said to be ready.

        Calls are answered meanwhile. Called again, it ends that time. May be called from any thread
        and from a signal handler while `serve` runs.
        """
        if not self._is_over:
            os.eventfd_write(self._told, 1)

    def stop(self) -> None:
        """Have `serve` return; may be called from any thread and from a signal handler."""
        self._native.stop()

    def _drain_when_told(self) -> None:
        """Do what `drain` says in a thread, since a signal handler must not wait for a lock."""
        os.eventfd_read(self._told)
        self._face.drain()
        if self._faces and not self._is_over:
            select.select([self._told], [], [], min(self._limits.grace_s, GRACE_MAX_S))
        if not self._is_over:
            self._native.stop()


def _inspect(socket: Path) -> Snapshot:
    """Ask the driver at `socket` what its clients hold."""
    with Client(socket) as client:
        return client.inspect()


def _http_server(face: Face, where: Listening, monitor: Monitor) -> FaceServer:
    assert where.http is not None
    try:
        from tightship.driver.oip.http.serving import HttpServer
    except ModuleNotFoundError as error:
        raise _missing("HTTP", error) from None
    return HttpServer(face, where.limits, where.http, monitor, where.host_names)


def _grpc_server(face: Face, limits: FaceLimits, host: str, port: int) -> FaceServer:
    try:
        from tightship.driver.oip.grpc.serving import GrpcServer
    except ModuleNotFoundError as error:
        raise _missing("gRPC", error) from None
    return GrpcServer(face, limits, host, port)


def _missing(face: str, error: ModuleNotFoundError) -> InputError:
    return InputError(
        f"The {face} face needs the package `{error.name}`; pip install 'tightship[serve]'."
    )
