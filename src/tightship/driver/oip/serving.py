"""`serve_http`: models for clients of the protocol until a signal ends it."""

import asyncio
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from tightship.driver.oip.face import Face
from tightship.driver.oip.http_connection import HttpConnection, HttpServer
from tightship.driver.oip.limits import HttpLimits
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.repository import ModelSource, Repository

DEFAULT_LIMITS = HttpLimits()


def serve_http(
    models: Mapping[str, ModelSource],
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    allow_client_shm: bool = False,
    limits: HttpLimits = DEFAULT_LIMITS,
    on_ready: Callable[[int], None] | None = None,
) -> None:
    """Load models and serve them until SIGTERM or SIGINT; then begun requests are answered.

    There is no authentication: whoever reaches the address may run, load and unload the models.

    Args:
        models: By the name that clients know them by.
        host: Address to listen at; by default nobody but this machine reaches it.
        port: 0 for any that is free.
        allow_client_shm: Whether clients may name shared memory of this user to be read and
            written.
        limits: What clients may take.
        on_ready: Called with the port once every model is loaded and requests are answered.

    Raises:
        OipError: A model cannot be loaded.
        OSError: The address cannot be listened at.
    """
    repository = Repository(models)
    try:
        for name in models:
            repository.load(name)
        face = Face(repository, RegionFiles(is_enabled=allow_client_shm), limits.body_bytes_max)
        asyncio.run(_serve(face, limits, (host, port), on_ready))
    finally:
        repository.close()


async def _serve(
    face: Face,
    limits: HttpLimits,
    address: tuple[str, int],
    on_ready: Callable[[int], None] | None,
) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    executor = ThreadPoolExecutor(limits.runs_max, thread_name_prefix="tightship-http")
    shared = HttpServer(face, limits, executor)
    shared.is_empty.set()
    listening = await loop.create_server(lambda: HttpConnection(shared), *address)
    if on_ready is not None:
        on_ready(listening.sockets[0].getsockname()[1])
    await ended.wait()
    face.is_draining = True
    listening.close()
    await _drain(shared)
    executor.shutdown(cancel_futures=True)


async def _drain(shared: HttpServer) -> None:
    """Wait for requests that have begun; cut off those that take too long."""
    for connection in tuple(shared.connections):
        connection.drain()
    try:
        await asyncio.wait_for(shared.is_empty.wait(), shared.limits.drain_s)
    except TimeoutError:
        for connection in tuple(shared.connections):
            connection.abort()
