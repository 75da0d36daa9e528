"""Driver process: its endpoints share one copy of each model and of each limit."""

import logging
import os
import select
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from socket import socket as tcp_socket
from threading import Thread, Timer
from typing import TYPE_CHECKING, Protocol

from tightship._core import RunPermits
from tightship.driver.client.client import Client
from tightship.driver.oip.admission.gate import OPEN_ENTRY, Entry
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.limits import LIMITS, EndpointLimits
from tightship.driver.oip.model_control import FREE_CONTROL, ModelControl, Poller
from tightship.driver.oip.model_source import Sources
from tightship.driver.oip.monitor import Monitor
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.repository import Repository
from tightship.driver.printable import printable
from tightship.driver.server.access import NO_ACCESS, Access
from tightship.driver.server.heap_trimmer import HeapTrimmer
from tightship.driver.server.server import Server
from tightship.driver.types.quota import Accounts
from tightship.driver.types.settings import USER_LIMITS
from tightship.driver.types.snapshot import Snapshot
from tightship.errors import InputError

if TYPE_CHECKING:
    from tightship.driver.texts.text_limits import TextLimits
    from tightship.driver.texts.text_models import TextModels

GRACE_MAX_S = 24 * 3600.0
"""Longest grace period that is waited: the kernel accepts at most 24 days for one wait."""

_LOG = logging.getLogger(__name__)

Address = tuple[str, int]
"""Host and port; port 0 is any free one."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Addresses and access rules of a driver.

    Attributes:
        socket: Path of the socket of its own protocol.
        http, grpc: Addresses of the inference protocol, of HTTP perhaps a socket that listens; None
            for no endpoint.
        allow_client_shm: Whether clients of the inference protocol may name shared memory of this
            user.
        limits: Limits on clients of the inference protocol.
        entry: Rules for clients of the inference protocol: names, certificate, admission.
        access: Users who may connect to the socket, and folders whose files are mapped without
            seals.
    """

    socket: Path
    http: Address | tcp_socket | None = None
    grpc: Address | None = None
    allow_client_shm: bool = False
    limits: EndpointLimits = LIMITS
    access: Access = NO_ACCESS
    entry: Entry = OPEN_ENTRY


class EndpointServer(Protocol):
    """Server of an endpoint, on threads of its own."""

    port: int

    def start(self) -> None:
        """Begin to answer."""
        ...

    def discard(self) -> None:
        """Stop listening; for a server that was not started."""
        ...

    def begin_stop(self) -> None:
        """Accept no more clients, and answer running calls within the limits."""
        ...

    def join(self) -> None:
        """Wait for the last thread."""
        ...


class Driver:
    """Models for other processes. Any client that connects may run, load and unload them."""

    def __init__(
        self,
        models: Sources,
        where: Listening,
        *,
        threads: int = 1,
        secret: bytes | None = None,
        control: ModelControl = FREE_CONTROL,
        texts: "TextLimits | None" = None,
    ) -> None:
        """Load the models and listen; calls are answered from `serve` on.

        Args:
            models: Sources of the models, by the names for clients.
            where: Addresses to listen at.
            threads: Runs at once, of all clients and endpoints together.
            secret: Key of `Server` that authenticates compilation caches.
            control: Which models are loaded at the start, and what changes that later.
            texts: Limits of language models, which answer texts by HTTP; None for none.

        Raises:
            CapacityError: The sessions of a language model do not fit its limit.
            InputError: An address is not available, or an endpoint's package is missing.
            OipError: None of the models can be loaded.
        """
        permits = RunPermits(threads)
        self._repository = Repository(models)
        accounts = Accounts(USER_LIMITS, kept={os.geteuid()})
        regions = RegionFiles(is_enabled=where.allow_client_shm, account=accounts.of(os.geteuid()))
        self._endpoint = InferenceEndpoint(
            self._repository, regions, permits, takes_control=control.takes_calls
        )
        self._poller = None if control.poll_s is None else Poller(self._repository, control.poll_s)
        self._endpoints: dict[str, EndpointServer] = {}
        self._limits = where.limits
        self._is_over = False
        self._texts: TextModels | None = None
        with ExitStack() as undo:
            undo.callback(self._repository.close)
            self._load_all(control)
            if where.http is not None:
                monitor = Monitor(self._endpoint, partial(_inspect, where.socket))
                http = self._endpoints["http"] = _http_server(self._endpoint, where, monitor)
                undo.callback(http.discard)
                if texts is not None:
                    self._texts = _texts_of(self._repository, texts, http)
                    self._endpoint.more_metrics.append(self._texts.metrics)
            if where.grpc is not None:
                grpc = self._endpoints["grpc"] = _grpc_server(self._endpoint, where, *where.grpc)
                undo.callback(grpc.discard)
            self._native = Server(
                where.socket,
                self._repository,
                permits,
                secret=secret,
                access=replace(where.access, accounts=accounts),
            )
            self._told = os.eventfd(0)
            undo.pop_all()

    def _load_all(self, control: ModelControl) -> None:
        """Load the models that can be loaded, and log why others cannot.

        Raises:
            OipError: There are models to load, and none can be loaded.
        """
        failures: list[OipError] = []
        for name in control.chosen(self._repository.names):
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
        """Names of the loaded models."""
        return self._repository.ready_names

    @property
    def ports(self) -> dict[str, int]:
        """Ports of the open endpoints, by `http` and `grpc`."""
        return {name: endpoint.port for name, endpoint in self._endpoints.items()}

    def serve(self) -> None:
        """Serve until `drain` or `stop` is called; running calls are answered within the limits.

        A run that exceeds them ends after its current step.
        """
        trimmer = HeapTrimmer()
        trimmer.start()
        for endpoint in self._endpoints.values():
            endpoint.start()
        if self._poller is not None:
            self._poller.start()
        draining = Thread(target=self._drain_when_told, name="tightship-drain")
        draining.start()
        try:
            self._native.serve()
        finally:
            trimmer.stop()
            self._is_over = True  # a signal must not write to the closed eventfd
            os.eventfd_write(self._told, 1)
            draining.join()
            os.close(self._told)
            self._end()

    def _end(self) -> None:
        if self._poller is not None:
            self._poller.stop()
        self._endpoint.end()
        for endpoint in self._endpoints.values():
            endpoint.begin_stop()
        late = Timer(self._limits.drain_s, self._abandon)
        late.start()
        for endpoint in self._endpoints.values():
            endpoint.join()
        late.cancel()
        self._repository.close()

    def _abandon(self) -> None:
        """End all runs after their current step."""
        self._endpoint.abandon()
        if self._texts is not None:
            self._texts.stop()

    def drain(self) -> None:
        """Report not ready, then end `serve` after `grace_s` of the limits, or when called again.

        Calls are answered until then. May be called from any thread, and from a signal handler
        while `serve` runs.
        """
        if not self._is_over:
            os.eventfd_write(self._told, 1)

    def stop(self) -> None:
        """End `serve`; may be called from any thread and from a signal handler."""
        self._native.stop()

    def _drain_when_told(self) -> None:
        """Wait for `drain` and act on it: a signal handler itself must not wait for a lock."""
        os.eventfd_read(self._told)
        self._endpoint.drain()
        if self._endpoints and not self._is_over:
            select.select([self._told], [], [], min(self._limits.grace_s, GRACE_MAX_S))
        if not self._is_over:
            self._native.stop()


def _inspect(socket: Path) -> Snapshot:
    with Client(socket) as client:
        return client.inspect()


def _http_server(endpoint: InferenceEndpoint, where: Listening, monitor: Monitor) -> EndpointServer:
    assert where.http is not None
    try:
        from tightship.driver.oip.http.serving import HttpServer
    except ModuleNotFoundError as error:
        raise _missing("HTTP", error) from None
    return HttpServer(endpoint, where.limits, where.http, monitor, where.entry)


def _texts_of(repository: Repository, limits: "TextLimits", http: EndpointServer) -> "TextModels":
    """Open the sessions of the language models, and have a server answer with them.

    Raises:
        CapacityError: They do not fit their limit.
        InputError: A package of the extra `text` is missing, or an option does not fit.
    """
    from tightship.driver.openai.application import OpenAiApplication  # few servers have texts
    from tightship.driver.texts.text_models import TextModels

    texts = TextModels(repository, limits)
    texts.prepare()
    http.texts = partial(OpenAiApplication, texts)  # type: ignore[attr-defined]
    return texts


def _grpc_server(
    endpoint: InferenceEndpoint, where: Listening, host: str, port: int
) -> EndpointServer:
    try:
        from tightship.driver.oip.grpc.serving import GrpcServer
    except ModuleNotFoundError as error:
        raise _missing("gRPC", error) from None
    return GrpcServer(endpoint, where.limits, host, port, where.entry)


def _missing(endpoint: str, error: ModuleNotFoundError) -> InputError:
    return InputError(
        f"The {endpoint} endpoint needs the package `{error.name}`; pip install 'tightship[serve]'."
    )
