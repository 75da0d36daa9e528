"""Inferences one by one, counted; those that stand are bound once, however often they come."""

from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic_ns, time_ns

from tightship.driver.oip.infer_request import InferRequest
from tightship.driver.oip.infer_response import OutputTensor
from tightship.driver.oip.inference import Bound, bind, outputs_of, run
from tightship.driver.oip.region_files import RegionFiles, Window
from tightship.driver.oip.request_counts import RequestCounts
from tightship.errors import TightshipError
from tightship.model import Model

STANDING_MAX = 256

Outputs = tuple[OutputTensor, ...]
Phases = tuple[int, int, int]
"""Nanoseconds of reading inputs, running, and writing outputs."""


@dataclass(frozen=True, slots=True, eq=False)
class _Standing:
    """A request that was run, with the last window of each region, and what was answered."""

    bound: Bound
    windows: tuple[Window, ...]
    outputs: tuple[OutputTensor, ...]


class Inferences:
    """Runs models on requests. May be used from several threads.

    Who asks the same again gives the same request object, and gets the same outputs.
    """

    def __init__(self, regions: RegionFiles) -> None:
        self._regions = regions
        self._standing: dict[int, _Standing] = {}
        regions.on_closed = self._standing.clear

    def infer(
        self, name: str, model: Model, request: InferRequest, counts: RequestCounts
    ) -> tuple[OutputTensor, ...]:
        """Run a model on a request that has begun, and count how it ends.

        Raises:
            OipError, RegionError: The request does not fit the model or the regions, or the run
                fails.
        """
        began = monotonic_ns()
        try:
            standing = self._known(model, request)
            if standing is not None and self._regions.begin_again(standing.windows):
                outputs, phases = self._again(standing, began)
            else:
                outputs, phases = self._first(name, model, request, began)
        except TightshipError:
            counts.add_failure(monotonic_ns() - began)
            raise
        counts.add_success(phases, time_ns() // 1_000_000)
        return outputs

    def _known(self, model: Model, request: InferRequest) -> _Standing | None:
        found = self._standing.get(id(request))
        if found is None or found.bound.request is not request or found.bound.model is not model:
            return None
        return found

    def _again(self, standing: _Standing, began: int) -> tuple[Outputs, Phases]:
        try:
            read_ns = monotonic_ns()
            run(standing.bound)
            ran_ns = monotonic_ns()
            for window in standing.windows:
                window.check()
        finally:
            self._regions.end(standing.windows)
        return standing.outputs, (read_ns - began, ran_ns - read_ns, monotonic_ns() - ran_ns)

    def _first(
        self, name: str, model: Model, request: InferRequest, began: int
    ) -> tuple[Outputs, Phases]:
        with ExitStack() as uses:
            bound = bind(name, model, request, self._regions, uses)
            read_ns = monotonic_ns()
            results = run(bound)
            ran_ns = monotonic_ns()
            outputs = outputs_of(bound, results)
            for window in bound.windows.values():
                window.check()
            if bound.is_standing:
                self._keep(bound, outputs)
        return outputs, (read_ns - began, ran_ns - read_ns, monotonic_ns() - ran_ns)

    def _keep(self, bound: Bound, outputs: tuple[OutputTensor, ...]) -> None:
        by_end = sorted(bound.windows.values(), key=lambda each: each.stop)
        windows = {each.region.name: each for each in by_end}
        if len(self._standing) >= STANDING_MAX:
            self._standing.clear()
        self._standing[id(bound.request)] = _Standing(bound, tuple(windows.values()), outputs)
        if not self._regions.are_there(tuple(windows.values())):
            self._standing.clear()
