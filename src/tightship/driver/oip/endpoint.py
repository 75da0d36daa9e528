"""Inference endpoint: replies to the calls of the protocol, common to HTTP and gRPC.

Replies without tensors are JSON values with the names and numbers of the gRPC messages.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic_ns
from typing import Any

from tightship import __version__
from tightship._core import RunPermits, StopFlag
from tightship.driver.oip.cached_inference import CachedInference, Inferences
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.infer_request import InferRequest
from tightship.driver.oip.infer_response import OutputTensor
from tightship.driver.oip.metadata import config_of, metadata_of
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.regions import Code
from tightship.driver.oip.repository import VERSION, Repository
from tightship.driver.oip.request_counts import prometheus_text, statistics_of

Said = dict[str, Any]

EXTENSIONS = (
    "binary_tensor_data",
    "cuda_shared_memory",
    "model_configuration",
    "model_repository",
    "parameters",
    "statistics",
    "system_shared_memory",
)
TRACE_SETTINGS: Said = {"trace_level": ["OFF"], "trace_rate": ["0"], "trace_count": ["0"]}
LOG_SETTINGS: Said = {"log_info": False, "log_warning": True, "log_error": True}


class InferenceEndpoint:
    """Inference endpoint. May be used from several threads.

    Attributes:
        repository: Models.
        regions: Shared memory that clients have named.
        permits: Permits of the inferences that run.
        changed: Notified when the server or a model becomes ready, or no longer is.
        stop: Set when all inferences must end, those of fast-path connections included.
    """

    def __init__(self, repository: Repository, regions: RegionFiles, permits: RunPermits) -> None:
        """Create an endpoint whose inferences each need one of `permits`."""
        self.repository = repository
        self.regions = regions
        self.changed = repository.changed
        self._is_draining = self._is_ending = False
        self._inferences = Inferences(regions, repository)
        self._callers = set[Caller]()
        self.permits, self.stop = permits, StopFlag()

    def abandon(self) -> None:
        """Start no more inferences, and end those that run after their current step."""
        self.stop.set()
        for caller in tuple(self._callers):
            caller.leave()

    @property
    def runs_max(self) -> int:
        """Inferences that may run at once."""
        return self.permits.count

    @property
    def is_free(self) -> bool:
        """Whether an inference could run now without waiting."""
        return self.permits.is_free

    @property
    def is_draining(self) -> bool:
        """Whether the server is about to end; then it is not ready, but still answers."""
        return self._is_draining

    @property
    def is_ending(self) -> bool:
        """Whether calls are no longer accepted, so that streaming calls must end."""
        return self._is_ending

    @property
    def is_ready(self) -> bool:
        """Whether clients may send requests to the server, whichever models are loaded."""
        return not self._is_draining

    def is_model_ready(self, name: str, version: str | None = None) -> bool:
        """Whether clients may send requests for a model; False if it does not exist."""
        return self.is_ready and self.repository.is_ready(name, version)

    def drain(self) -> None:
        """Report not ready from now on, but still answer. May be repeated."""
        with self.changed:
            self._is_draining = True
            self.changed.notify_all()

    def end(self) -> None:
        """End calls that only wait for changes. May be repeated."""
        with self.changed:
            self._is_draining = self._is_ending = True
            self.changed.notify_all()

    def metadata(self) -> Said:
        """Return name, version and extensions of the server."""
        return {"name": "tightship", "version": __version__, "extensions": list(EXTENSIONS)}

    def model_metadata(self, name: str, version: str | None) -> Said:
        """Return the types of a model's inputs and outputs.

        Raises:
            OipError: The model does not exist, or is not ready.
        """
        with self.repository.used(name, version) as (model, _):
            return metadata_of(name, model)

    def model_config(self, name: str, version: str | None) -> Said:
        """Return a model's configuration.

        Raises:
            OipError: The model does not exist, or is not ready.
        """
        with self.repository.used(name, version) as (model, _):
            return config_of(name, model)

    def statistics(self, name: str = "", version: str | None = None) -> Said:
        """Return the request counts of a model, or of all.

        Raises:
            OipError: The model does not exist, or is not ready.
        """
        if name:
            self.repository.model(name, version)
        names = (name,) if name else self.repository.names
        counts = self.repository.counts
        return {"model_stats": [statistics_of(each, VERSION, counts(each)) for each in names]}

    def metrics(self) -> str:
        """Return the metrics of all models by endpoint for Prometheus."""
        repository = self.repository
        rows = []
        for name in repository.names:
            rows.append((name, VERSION, "protocol", repository.counts(name)))
            rows.append((name, VERSION, "native", repository.native_counts(name)))
        rows.append(("", "", "native", repository.native_counts(None)))
        return prometheus_text(rows)

    def load(self, name: str, *, has_parameters: bool) -> None:
        """Load or reload a model, as `Repository.load`.

        Raises:
            OipError: The model does not exist, cannot be loaded, or the call has parameters.
        """
        if has_parameters:
            raise OipError(
                f"failed to load '{name}': a model is loaded as the server was started with it; "
                "parameters are not supported"
            )
        self.repository.load(name)

    def infer(
        self,
        name: str,
        version: str | None,
        request: InferRequest,
        asked_ns: int | None = None,
        caller: Caller | None = None,
    ) -> tuple[OutputTensor, ...]:
        """Run a model once the caller has a permit, and count the request.

        Args:
            name: Name of the model.
            version: Version of the model; None for any.
            request: Decoded request.
            asked_ns: Time of its arrival, by `monotonic_ns`; None for now.
            caller: Client, which may leave meanwhile; None for one that stays.

        Raises:
            OipError, RegionError: The model does not exist, the request does not fit it or the
                regions, the caller leaves, or the run fails.
        """
        began = monotonic_ns() if asked_ns is None else asked_ns
        asking = caller or Caller(self.permits)
        with self.repository.used(name, version) as (model, metrics), self._present(asking):
            try:
                place = asking.take_permit(name, metrics, request.left_s(began))
            except OipError:
                metrics.fail(monotonic_ns() - began)
                raise
            try:
                return self._inferences.infer(name, model, request, metrics, began, asking.stop)
            finally:
                self.permits.give_back(place)

    @contextmanager
    def _present(self, caller: Caller) -> Iterator[None]:
        """Register a caller for `abandon`."""
        self._callers.add(caller)
        if self.stop.is_set():
            caller.leave()
        try:
            yield
        finally:
            self._callers.discard(caller)

    def cached(
        self, name: str, version: str | None, request: InferRequest
    ) -> CachedInference | None:
        """Return the cached inference of a request, if its model is still the same.

        Raises:
            OipError: The model does not exist, or is not ready.
        """
        found = self._inferences.cached(request)
        is_its = found is not None and found.model is self.repository.model(name, version)[0]
        return found if is_its else None  # a model of this name may have been loaded since

    def still_has(self, cached: CachedInference) -> bool:
        """Whether the model and the regions of a cached inference are current."""
        return self.regions.are_there(cached.windows) and self.repository.has(cached.model)


def check_unchanged(settings: Said, what: str) -> None:
    """Refuse to change settings.

    Raises:
        OipError: There are settings to change.
    """
    if settings:
        raise OipError(f"{what} settings cannot be changed here", Code.UNIMPLEMENTED)
