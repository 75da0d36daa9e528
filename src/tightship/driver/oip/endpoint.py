"""Inference endpoint: replies to the calls of the protocol, common to HTTP and gRPC.

Replies without tensors are JSON values with the names and numbers of the gRPC messages.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic_ns
from typing import Any

from tightship import __version__
from tightship._core import RunPermits, StopFlag
from tightship.driver.oip.cached_inference import Inferences, Repeated
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.histograms import distributions_of, histogram_text
from tightship.driver.oip.infer_request import InferRequest
from tightship.driver.oip.infer_response import Outputs
from tightship.driver.oip.inference import Asked
from tightship.driver.oip.joined_run import Key
from tightship.driver.oip.load_parameters import check_unload, config_given
from tightship.driver.oip.metadata import config_of, metadata_of
from tightship.driver.oip.model_entry import LATEST
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.regions import Code
from tightship.driver.oip.repository import Repository
from tightship.driver.oip.request_counts import labels_of, prometheus_text, statistics_of
from tightship.driver.oip.served_model import ServedModel
from tightship.errors import TightshipError
from tightship.model.session_opener import copied_inputs

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


@dataclass(frozen=True, slots=True, eq=False)
class Inferred:
    """Outputs of an inference, and the version of the model that ran.

    Attributes:
        took_ns: Nanoseconds of running it, without waiting; those of the batch if it was joined.
    """

    served: ServedModel
    outputs: Outputs
    took_ns: int


class InferenceEndpoint:
    """Inference endpoint. May be used from several threads.

    Attributes:
        repository: Models.
        regions: Shared memory that clients have named.
        permits: Permits of the inferences that run.
        changed: Notified when the server or a model becomes ready, or no longer is.
        stop: Set when all inferences must end.
        more_metrics: Functions that return further metrics, in Prometheus' text format.
    """

    def __init__(
        self,
        repository: Repository,
        regions: RegionFiles,
        permits: RunPermits,
        *,
        takes_control: bool = True,
    ) -> None:
        """Create an endpoint.

        Args:
            repository: Models.
            regions: Shared memory that clients have named.
            permits: Permits, of which each inference needs one.
            takes_control: Whether clients may load and unload models.
        """
        self._takes_control = takes_control
        self.repository = repository
        self.regions = regions
        self.changed = repository.changed
        self._is_draining = self._is_ending = False
        self._inferences = Inferences(regions, repository)
        self._callers = set[Caller]()
        self.more_metrics: list[Callable[[], str]] = []
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
        with self.repository.used(name, version) as served:
            return metadata_of(served, self.repository.served_versions(name))

    def model_config(self, name: str, version: str | None) -> Said:
        """Return a model's configuration.

        Raises:
            OipError: The model does not exist, or is not ready.
        """
        with self.repository.used(name, version) as served:
            return config_of(served)

    def statistics(self, name: str = "", version: str | None = None) -> Said:
        """Return the request counts of a version, of all of a model, or of all models.

        Raises:
            OipError: The model does not exist, or is not ready.
        """
        repository = self.repository
        if name:
            repository.served(name, version)
        names = (name,) if name else repository.names
        asked = [(each, known) for each in names for known in repository.versions(each)]
        return {
            "model_stats": [
                statistics_of(each, known, repository.counts(each, known))
                for each, known in asked
                if version in LATEST or known == version
            ]
        }

    def metrics(self) -> str:
        """Return the metrics of all models by endpoint for Prometheus."""
        repository = self.repository
        rows, distributions = [], []
        for name in repository.names:
            for version in repository.versions(name):
                counts = repository.counts(name, version)
                native = repository.native_counts(name, version)
                rows.append((name, version, "protocol", counts))
                rows.append((name, version, "native", native))
                state = repository.state(name, version)
                for endpoint, found in distributions_of(state).items():
                    distributions.append((labels_of(name, version, endpoint), found))
        rows.append(("", "", "native", repository.native_counts(None)))
        more = "".join(each() for each in self.more_metrics)
        return prometheus_text(rows) + histogram_text(distributions) + more

    def load(self, name: str, parameters: Mapping[str, object]) -> None:
        """Load or reload a model, as `Repository.load`.

        Args:
            name: Name of the model.
            parameters: Parameters of the call, of which `config` is one: a configuration in JSON.

        Raises:
            OipError: The model does not exist or cannot be loaded, another parameter is given, or
                the server takes no such calls.
        """
        self._check_control()
        self.repository.load(name, config_given(name, parameters))

    def unload(self, name: str, parameters: Mapping[str, object]) -> None:
        """Unload a model, as `Repository.unload`.

        Raises:
            OipError: The model does not exist, an unknown parameter is given, or the server takes
                no such calls.
        """
        self._check_control()
        check_unload(name, parameters)
        self.repository.unload(name)

    def _check_control(self) -> None:
        if not self._takes_control:
            raise OipError(
                "explicit model load / unload is not allowed if polling is enabled, or without "
                "model control; start the server with `--model-control-mode explicit`",
                Code.UNAVAILABLE,
            )

    @contextmanager
    def waiting(self, caller: Caller) -> Iterator[None]:
        """Have a caller leave within a block once all inferences must end."""
        self._callers.add(caller)
        if self.stop.is_set():
            caller.leave()
        try:
            yield
        finally:
            self._callers.discard(caller)

    def joins(self, served: ServedModel) -> bool:
        """Whether requests of a model are joined now, for which each waits in a thread."""
        return self._inferences.joins(served)

    def infer(
        self,
        name: str,
        version: str | None,
        request: InferRequest,
        asked_ns: int | None = None,
        caller: Caller | None = None,
    ) -> Inferred:
        """Run a model once the caller has a permit, and count the request.

        Args:
            name: Name of the model.
            version: Version of the model; None for the latest.
            request: Decoded request.
            asked_ns: Time of its arrival, by `monotonic_ns`; None for now.
            caller: Client, which may leave meanwhile; None for one that stays.

        Raises:
            OipError, RegionError: The model does not exist, the request does not fit it or the
                regions, the caller leaves, or the run fails.
        """
        began = monotonic_ns() if asked_ns is None else asked_ns
        asking = caller or Caller(self.permits)
        served = self.repository.begin_use(name, version)
        try:
            self._callers.add(asking)
            if self.stop.is_set():
                asking.leave()
            return Inferred(served, *self._inferences.answer(served, request, began, asking))
        finally:
            self._callers.discard(asking)
            self.repository.end_use(served)

    def infer_again(self, request: InferRequest, asked_ns: int) -> Repeated | None:
        """Repeat an inference whose tensors are in regions, if a permit is free, and count it.

        Returns:
            None if it is to be run by `infer`, which also says why it fails.
        """
        permits = self.permits
        if self.stop.is_set() or not permits.take_free():
            return None
        try:
            return self._inferences.repeat(request, asked_ns, self.stop)
        finally:
            permits.give_back()

    def infer_together(
        self, name: str, version: str | None, asked: Sequence[Asked]
    ) -> tuple[ServedModel, list[Outputs | TightshipError | MemoryError]]:
        """Run a model on several requests, in this thread, which has a permit for them.

        Returns:
            The version that ran, and the outputs of each request, or the error by which it fails.

        Raises:
            OipError: The model does not exist, or is not ready.
        """
        callers = [each.caller for each in asked]
        served = self.repository.begin_use(name, version)
        try:
            self._callers.update(callers)
            if self.stop.is_set():
                for each in callers:
                    each.leave()
            return served, self._inferences.infer_together(served, asked)
        finally:
            self._callers.difference_update(callers)
            self.repository.end_use(served)

    def batch_max(self, served: ServedModel) -> int:
        """Return the rows of the largest batch that `infer_together` may run; 0 if it joins none.

        Steps of caches that grow have programs of their own, which are not known by their sizes.
        """
        config = served.config
        if config is None or not served.may_join or copied_inputs(served.model):
            return 0
        return config.max_batch_size

    def is_planned(self, served: ServedModel, key: Key, rows: int) -> bool:
        """Whether a batch of `rows` of these shapes would run now without being planned first."""
        queue = self._inferences.queue(served)
        return queue is not None and queue.is_planned(key, rows)


def check_unchanged(settings: Said, what: str) -> None:
    """Refuse to change settings.

    Raises:
        OipError: There are settings to change.
    """
    if settings:
        raise OipError(f"{what} settings cannot be changed here", Code.UNIMPLEMENTED)
