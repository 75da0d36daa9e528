"""Models behind the Open Inference Protocol, within an ASGI application of your own.

`tightship serve` is a server of its own; this is for a process that serves other things as well.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from tightship._core import RunPermits
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.http.application import HttpApplication
from tightship.driver.oip.http.browsers import AllowedOrigins
from tightship.driver.oip.http.calls import HttpCalls
from tightship.driver.oip.limits import LIMITS
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.queued_calls import QueuedCalls
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.regions import RegionError
from tightship.driver.oip.repository import Repository
from tightship.driver.threads import Threads
from tightship.errors import InputError
from tightship.quantity import parse_bytes

LOADS_MAX = 4
"""Models that are loaded or unloaded at once."""


class Application(HttpApplication):
    """ASGI application that answers the Open Inference Protocol, as `asgi` makes it."""

    def __init__(
        self, repository: Repository, endpoint: InferenceEndpoint, calls: HttpCalls, limit: int
    ) -> None:
        """Answer by the calls of an endpoint, with bodies of up to `limit` bytes."""
        threads = Threads(LIMITS.connections_max, "tightship-http")
        loaders = Threads(LOADS_MAX, "tightship-load")
        self._queue = QueuedCalls(endpoint.permits)
        super().__init__(calls, limit, threads, loaders, queue=self._queue)
        self._repository, self._endpoint = repository, endpoint

    def close(self) -> None:
        """End runs after their current step, and close the models. May be repeated."""
        self._endpoint.end()
        self._endpoint.abandon()
        self._queue.close()
        for threads in (self._executor, self._loaders):
            threads.shutdown(cancel_futures=True)
        with suppress(RegionError):  # clients may name none
            self._endpoint.regions.unregister(None)
        self._repository.close()


def asgi(
    models: str | PathLike[str] | Mapping[str, str | PathLike[str]],
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    threads: int | None = None,
    max_body: str | int = LIMITS.body_bytes_max,
    allow_client_shm: bool = False,
) -> Application:
    """Load models, and return an application of ASGI 3 that answers for them.

    Mount it at a path of yours, `app.mount("/v2", tightship.serve.asgi(models))`: clients such as
    `tritonclient` then call the server as they would call Triton. Mounted elsewhere, say at
    `/models`, the protocol is at `/models/v2`, and the client's URL is `host:port/models`.

    Limits on connections, and who may call, are those of your server and your application.

    Args:
        models: An ONNX file or prepared model, which is named as its file is, without the suffix;
            or several, by the names that clients use.
        shapes: Shapes for inputs whose dimensions are symbolic, for all models.
        threads: Runs at once, by default as many as there are processors.
        max_body: Largest body of a request, in bytes or such as `"64MiB"`.
        allow_client_shm: Whether clients may name shared memory of this user.

    Raises:
        InputError: No model is given, or one is not a path.
        OipError: A model cannot be loaded.
    """
    paths = models if isinstance(models, Mapping) else {Path(fspath(models)).stem: models}
    if not paths:
        raise InputError("`models` names no models; give at least one.")
    for name, path in paths.items():
        if not isinstance(path, str | PathLike):
            raise InputError(
                f"Model `{name}` is a `{type(path).__name__}`; give the path of its file, which "
                "the application loads."
            )
    given: dict[str, Any] = {name: ModelSource(path, shapes) for name, path in paths.items()}
    repository = Repository(lambda: given)
    try:
        for name in given:
            repository.load(name)
    except BaseException:
        repository.close()
        raise
    regions = RegionFiles(is_enabled=allow_client_shm)
    permits = RunPermits(threads or os.cpu_count() or 1)
    endpoint = InferenceEndpoint(repository, regions, permits)
    limit = parse_bytes(max_body, "max_body")
    calls = HttpCalls(endpoint, limit, origins=AllowedOrigins(is_local=False))
    return Application(repository, endpoint, calls, limit)


__all__ = ["Application", "asgi"]
