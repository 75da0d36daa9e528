"""Cached inferences: requests with all tensors in regions are bound once and repeated."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic_ns

from tightship._core import StopFlag
from tightship.driver.oip.batch_queue import BatchQueue
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.infer_request import InferRequest
from tightship.driver.oip.infer_response import OutputTensor
from tightship.driver.oip.inference import Asked, Bound, bind, outputs_of, refusal_of, run
from tightship.driver.oip.joined_run import JoinedRun, Member, Ran
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles, Window
from tightship.driver.oip.regions import Region
from tightship.driver.oip.repository import Repository
from tightship.driver.oip.served_model import ServedModel
from tightship.errors import TightshipError
from tightship.model import Model
from tightship.model.bound_run import BoundRun, LoneRun, lone_run

CACHED_MAX = 256

Outputs = tuple[OutputTensor, ...]
Answered = tuple[Outputs, int]
"""Outputs, and the nanoseconds that they took without waiting; those of the whole batch if any."""
Repeated = tuple[ServedModel, Outputs, int]
"""Model and outputs of an inference that was repeated, and the nanoseconds that it took."""


class Repeat:
    """Bound run that is left to the native core alone once that is possible."""

    def __init__(self, bound: BoundRun) -> None:
        """Repeat a bound run."""
        self._bound = bound
        self._lone: LoneRun | None = None
        self._is_new = True

    def run(self, stop: StopFlag) -> None:
        """Run once, as `BoundRun.run`.

        Raises:
            TightshipError: The errors of `BoundRun.run`.
        """
        if self._lone is not None and self._lone.run(stop):
            return
        self._bound.run(stop)
        if self._is_new:
            self._lone, self._is_new = lone_run(self._bound), False


@dataclass(frozen=True, slots=True, eq=False)
class CachedInference:
    """Request that was run, and may be repeated as it is.

    Attributes:
        again: Bound run; None with a timeout, or if an output of the model is not requested.
        windows: Last window of each region.
        regions: Regions of the windows.
        outputs: Outputs of the reply.
        model: Model to run.
    """

    bound: Bound
    again: Repeat | None
    windows: tuple[Window, ...]
    regions: tuple[Region, ...]
    outputs: Outputs
    model: Model


class Inferences:
    """Runs models on requests. May be used from several threads.

    An equal request must be the same object to be repeated, and then gets the same outputs.
    """

    def __init__(self, regions: RegionFiles, repository: Repository) -> None:
        self._regions, self._repository = regions, repository
        self._cached: dict[int, CachedInference] = {}
        self._queues: dict[Model, BatchQueue] = {}
        regions.on_closed = self._cached.clear
        repository.on_withdrawn.append(self._forget)

    def answer(
        self, served: ServedModel, request: InferRequest, asked_ns: int, caller: Caller
    ) -> Answered:
        """Run a model on a request once its caller has a permit, perhaps with other requests.

        Raises:
            OipError, RegionError: As from `infer`, or the caller leaves, or the time is over.
        """
        if not caller.has_permit and self.joins(served):
            return self.infer_joined(served, request, asked_ns, caller)
        try:
            place = caller.take_permit(served.name, served.metrics, request.left_s(asked_ns))
        except OipError:
            served.metrics.fail(monotonic_ns() - asked_ns)
            raise
        try:
            return self.infer(served, request, asked_ns, caller.stop)
        finally:
            caller.give_back(place)

    def infer(
        self,
        served: ServedModel,
        request: InferRequest,
        asked_ns: int,
        stop: StopFlag,
    ) -> Answered:
        """Run a model on a request that arrived at `asked_ns`, and count its result.

        Raises:
            OipError, RegionError: The request does not fit the model or the regions, or the run
                fails, as it does once `stop` is set.
        """
        began, metrics = monotonic_ns(), served.metrics
        try:
            cached = self.cached(request)
            is_known = cached is not None and cached.model is served.model
            if cached and is_known and self._regions.begin_again(cached.regions):
                outputs, read_ns, ran_ns = self._again(cached, asked_ns, stop)
            else:
                with ExitStack() as uses:
                    bound = bind(served, request, self._regions, uses)
                    outputs, read_ns, ran_ns = self._first(bound, asked_ns, stop)
        except (TightshipError, MemoryError):
            metrics.fail(monotonic_ns() - asked_ns)
            raise
        ended = monotonic_ns()
        metrics.succeed((began - asked_ns, read_ns - began, ran_ns - read_ns, ended - ran_ns))
        if self._queues and (queue := self._queues.get(served.model)) is not None:
            queue.gain.note(ran_ns - read_ns, 1)
        return outputs, ended - began

    def joins(self, served: ServedModel) -> bool:
        """Whether requests of a model are joined, which has to be configured and to be worth it."""
        if not served.may_join:
            return False
        queue = self.queue(served)
        return queue is not None and queue.gain.pays

    def queue(self, served: ServedModel) -> BatchQueue | None:
        """Return the queue of a model whose requests are joined; None for other models."""
        config = served.config
        if not served.may_join or config is None or config.batching is None:
            return None
        found = self._queues.get(served.model)
        if found is None:
            made = BatchQueue(config.max_batch_size, config.batching.max_delay_us)
            found = self._queues.setdefault(served.model, made)
        return found

    def infer_joined(
        self, served: ServedModel, request: InferRequest, asked_ns: int, caller: Caller
    ) -> Answered:
        """Run a model as `infer`, for a caller without a permit and perhaps with other requests.

        Raises:
            OipError, RegionError: As from `infer`, or the caller leaves.
        """
        metrics, queue = served.metrics, self.queue(served)
        assert queue is not None, served.name
        try:
            with ExitStack() as uses:
                bound = bind(served, request, self._regions, uses)
                ran = queue.run(bound, caller, asked_ns)
                return _delivered(bound, ran, asked_ns), ran.ended_ns - ran.began_ns
        except (TightshipError, MemoryError):
            metrics.fail(monotonic_ns() - asked_ns)
            raise

    def infer_together(
        self, served: ServedModel, asked: Sequence[Asked]
    ) -> list[Outputs | TightshipError | MemoryError]:
        """Run a model on several requests, in this thread, which has a permit for them.

        Returns:
            The outputs of each request, or the error by which it alone fails.
        """
        with ExitStack() as uses:
            members = [self._member(served, each, uses) for each in asked]
            bound = [each for each in members if isinstance(each, Member)]
            queue = self.queue(served)
            if queue is not None:
                queue.run_at_once(bound)
            else:  # it was loaded again meanwhile
                for each in bound:
                    each.joined = JoinedRun((each,), each.size)
                    each.joined.run()
                    each.joined.end()
            return [_result(*pair) for pair in zip(asked, members, strict=True)]

    def _member(
        self, served: ServedModel, asked: Asked, uses: ExitStack
    ) -> Member | TightshipError | MemoryError:
        """Return a request with its tensors, which stay until the end of a block, or its error."""
        caller = asked.caller
        try:
            bound = bind(served, asked.request, self._regions, uses)
        except (TightshipError, MemoryError) as error:
            served.metrics.fail(monotonic_ns() - asked.asked_ns)
            return error
        member = Member(bound, caller.place(served.name, served.metrics), asked.asked_ns)
        uses.callback(member.end)
        uses.enter_context(caller.noticing(member.leave))
        return member

    def cached(self, request: InferRequest) -> CachedInference | None:
        """Return the cached inference of this request object, if it may be repeated."""
        found = self._cached.get(id(request))
        return found if found is not None and found.bound.request is request else None

    def repeat(self, request: InferRequest, asked_ns: int, stop: StopFlag) -> Repeated | None:
        """Repeat a cached inference, for a caller that has a permit, and count it.

        Returns:
            None if it is not cached, or fails; then nothing is counted, and `infer` says why.
        """
        cached = self._cached.get(id(request))
        if cached is None or cached.bound.request is not request or cached.again is None:
            return None
        served, began = cached.bound.served, monotonic_ns()
        if not self._repository.begin_use_again(served):
            return None
        try:
            if not self._regions.begin_again(cached.regions):
                return None
            try:
                cached.again.run(stop)
                ran = monotonic_ns()
                for window in cached.windows:
                    window.check()
            finally:
                self._regions.end(cached.regions)
        except (TightshipError, MemoryError):
            return None
        finally:
            self._repository.end_use(served)
        ended = monotonic_ns()
        served.metrics.succeed((began - asked_ns, 0, ran - began, ended - ran))
        if self._queues and (queue := self._queues.get(served.model)) is not None:
            queue.gain.note(ran - began, 1)
        return served, cached.outputs, ended - began

    def _again(
        self, cached: CachedInference, asked_ns: int, stop: StopFlag
    ) -> tuple[Outputs, int, int]:
        """Repeat a run; return outputs and the times after reading inputs and after the run."""
        try:
            read_ns = monotonic_ns()
            if cached.again is None:
                run(cached.bound, asked_ns, stop)
            else:
                try:
                    cached.again.run(stop)
                except (TightshipError, MemoryError) as error:
                    raise refusal_of(error, cached.model) from error
            ran_ns = monotonic_ns()
            for window in cached.windows:
                window.check()
        finally:
            self._regions.end(cached.regions)
        return cached.outputs, read_ns, ran_ns

    def _first(self, bound: Bound, asked_ns: int, stop: StopFlag) -> tuple[Outputs, int, int]:
        read_ns = monotonic_ns()
        results = run(bound, asked_ns, stop)
        ran_ns = monotonic_ns()
        outputs = outputs_of(bound, results)
        for window in bound.windows.values():
            window.check()
        if bound.is_cached:
            self._keep(bound, outputs)
        return outputs, read_ns, ran_ns

    def _keep(self, bound: Bound, outputs: Outputs) -> None:
        by_end = sorted(bound.windows.values(), key=lambda each: each.stop)
        windows = tuple({each.region.name: each for each in by_end}.values())
        regions = tuple(each.region for each in windows)
        is_whole = bound.request.timeout_s is None and len(bound.direct) == len(
            bound.model.output_names
        )
        again = Repeat(bound.model.bind(bound.arrays, bound.direct)) if is_whole else None
        if len(self._cached) >= CACHED_MAX:
            self._cached.clear()
        self._cached[id(bound.request)] = CachedInference(
            bound, again, windows, regions, outputs, bound.model
        )
        if not (self._regions.are_there(regions) and self._repository.has(bound.model)):
            self._cached.clear()

    def _forget(self, model: Model) -> None:
        self._queues.pop(model, None)
        for key, cached in tuple(self._cached.items()):
            if cached.model is model:
                self._cached.pop(key, None)


def _result(
    asked: Asked, member: Member | TightshipError | MemoryError
) -> Outputs | TightshipError | MemoryError:
    """Return the outputs of a request whose run has ended, or its error."""
    if not isinstance(member, Member):
        return member
    assert member.joined is not None, member
    try:
        ran = member.joined.result_of(member, asked.caller)
        return _delivered(member.bound, ran, asked.asked_ns)
    except (TightshipError, MemoryError) as error:
        member.bound.served.metrics.fail(monotonic_ns() - asked.asked_ns)
        return error


def _delivered(bound: Bound, ran: Ran, asked_ns: int) -> Outputs:
    """Return the outputs of a run, perhaps with other requests, and count it.

    Raises:
        OipError, RegionError: A region is too small, or its object has become shorter.
    """
    outputs = outputs_of(bound, ran.results)
    for window in bound.windows.values():
        window.check()
    ended = monotonic_ns()
    took = ran.began_ns - asked_ns, 0, ran.ended_ns - ran.began_ns, ended - ran.ended_ns
    bound.served.metrics.succeed(took)
    return outputs
