"""What every call of the protocol is answered, whatever carries it: one face for HTTP and gRPC.

Answers that are no tensors are values of JSON with the names and numbers that the gRPC messages
have too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic_ns
from typing import Any

from tightship import __version__
from tightship._core import StopFlag, Turns
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.infer_request import InferRequest
from tightship.driver.oip.infer_response import OutputTensor
from tightship.driver.oip.metadata import config_of, metadata_of
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.regions import Code
from tightship.driver.oip.repository import VERSION, Repository
from tightship.driver.oip.request_counts import prometheus_text, statistics_of
from tightship.driver.oip.standing import Inferences, Standing

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


class Face:
    """Answers the calls of the protocol. May be used from several threads.

    Attributes:
        repository: The models.
        regions: The shared memory that clients have named.
        turns: One for each inference that runs.
        changed: Notified when the server or a model becomes ready, or is ready no longer.
        stop: Set when no inference is to go on, those of lent connections included.
    """

    def __init__(self, repository: Repository, regions: RegionFiles, turns: Turns) -> None:
        """Each inference takes one of `turns`, or waits for it."""
        self.repository = repository
        self.regions = regions
        self.changed = repository.changed
        self._is_draining = self._is_ending = False
        self._inferences = Inferences(regions, repository)
        self._callers = set[Caller]()
        self.turns, self.stop = turns, StopFlag()

    def abandon(self) -> None:
        """Have no inference begin any more, and those that run end after the step they are in."""
        self.stop.set()
        for caller in tuple(self._callers):
            caller.leave()

    @property
    def runs_max(self) -> int:
        """Inferences that may run at once."""
        return self.turns.count

    @property
    def is_free(self) -> bool:
        """Whether an inference would have to wait for no other, as of now."""
        return self.turns.is_free

    @property
    def is_draining(self) -> bool:
        """Whether the server is about to end; it is not ready then, and still answers."""
        return self._is_draining

    @property
    def is_ending(self) -> bool:
        """Whether no more calls are taken, so that calls without an end of their own must end."""
        return self._is_ending

    @property
    def is_ready(self) -> bool:
        """Whether clients may send requests to the server, whichever models it could load."""
        return not self._is_draining

    def is_model_ready(self, name: str, version: str | None = None) -> bool:
        """Whether clients may send requests for a model; False for one that is not there."""
        return self.is_ready and self.repository.is_ready(name, version)

    def drain(self) -> None:
        """Say from now on that nothing is ready, and answer all the same. May be repeated."""
        with self.changed:
            self._is_draining = True
            self.changed.notify_all()

    def end(self) -> None:
        """Have calls end that only wait for changes. May be repeated."""
        with self.changed:
            self._is_draining = self._is_ending = True
            self.changed.notify_all()

    def metadata(self) -> Said:
        """What the server says of itself."""
        return {"name": "tightship", "version": __version__, "extensions": list(EXTENSIONS)}

    def model_metadata(self, name: str, version: str | None) -> Said:
        """What a model takes and gives.

        Raises:
            OipError: There is no such model, or it is not ready.
        """
        with self.repository.used(name, version) as (model, _):
            return metadata_of(name, model)

    def model_config(self, name: str, version: str | None) -> Said:
        """A model's configuration.

        Raises:
            OipError: There is no such model, or it is not ready.
        """
        with self.repository.used(name, version) as (model, _):
            return config_of(name, model)

    def statistics(self, name: str = "", version: str | None = None) -> Said:
        """Requests of a model, or of all.

        Raises:
            OipError: There is no such model, or it is not ready.
        """
        if name:
            self.repository.model(name, version)
        names = (name,) if name else self.repository.names
        counts = self.repository.counts
        return {"model_stats": [statistics_of(each, VERSION, counts(each)) for each in names]}

    def metrics(self) -> str:
        """Requests of all models by face, as Prometheus reads it; clients' own have no name."""
        repository = self.repository
        rows = []
        for name in repository.names:
            rows.append((name, VERSION, "protocol", repository.counts(name)))
            rows.append((name, VERSION, "native", repository.native_counts(name)))
        rows.append(("", "", "native", repository.native_counts(None)))
        return prometheus_text(rows)

    def load(self, name: str, *, has_parameters: bool) -> None:
        """Load a model, or load it anew; as `Repository.load`.

        Raises:
            OipError: There is no such model, it cannot be loaded, or it is to be loaded otherwise
                than the server was started with it.
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
        """Run a model when it is the caller's turn, and count it.

        Args:
            name: Of the model.
            version: Of the model; None for any.
            request: What to run it on.
            asked_ns: When that came, by `monotonic_ns`; None for now.
            caller: Who may leave meanwhile; None for one who stays.

        Raises:
            OipError, RegionError: There is no such model, the request does not fit it or the
                regions, the caller leaves, or the run fails.
        """
        began = monotonic_ns() if asked_ns is None else asked_ns
        asking = caller or Caller(self.turns)
        with self.repository.used(name, version) as (model, tally), self._present(asking):
            try:
                place = asking.take_turn(name, tally, request.left_s(began))
            except OipError:
                tally.fail(monotonic_ns() - began)
                raise
            try:
                return self._inferences.infer(name, model, request, tally, began, asking.stop)
            finally:
                self.turns.give_back(place)

    @contextmanager
    def _present(self, caller: Caller) -> Iterator[None]:
        """Have `abandon` tell a caller meanwhile."""
        self._callers.add(caller)
        if self.stop.is_set():
            caller.leave()
        try:
            yield
        finally:
            self._callers.discard(caller)

    def standing(self, name: str, version: str | None, request: InferRequest) -> Standing | None:
        """What is known of a request to a model that may be run again as it is, if it may.

        Raises:
            OipError: There is no such model, or it is not ready.
        """
        found = self._inferences.standing(request)
        is_its = found is not None and found.model is self.repository.model(name, version)[0]
        return found if is_its else None  # the same may have been asked of another model since

    def still_has(self, standing: Standing) -> bool:
        """Whether its model and its regions are those of now."""
        return self.regions.are_there(standing.windows) and self.repository.has(standing.model)


def check_unchanged(settings: Said, what: str) -> None:
    """Refuse a call that changes settings which cannot be changed.

    Raises:
        OipError: It changes some.
    """
    if settings:
        raise OipError(f"{what} settings cannot be changed here", Code.UNIMPLEMENTED)
