"""Runs the stages of a model on the nodes of a cluster, several calls at once."""

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from tightship.cluster.booked_nodes import BookedActor, BookedNodes, Bundle, Place, granted
from tightship.cluster.calls_in_flight import RESTART_S, CallsInFlight, Stages
from tightship.cluster.ray_state import alive_nodes, ray_module
from tightship.cluster.replica import Array
from tightship.cluster.replica_memory import Requirements
from tightship.cluster.splitting import Stage
from tightship.cluster.stage_actor import CHANNEL_BYTES, StageActor, StageProbe, stage_name
from tightship.cluster.stage_file import StageSource, source_of_stage
from tightship.cluster.stage_graph import StageGraph
from tightship.cluster.stage_placing import StageNeeds, place_stages
from tightship.cluster.worker import measured_workers
from tightship.errors import DeadlineError, InputError

IN_FLIGHT_MAX = 1000


def pipeline(stages: Sequence[Stage], *, in_flight: int | None = None) -> "Pipeline":
    """Start the stages of a split model, each booked exactly and held to its booking.

    Args:
        stages: All stages of a split, in order. The model's file has the same bytes on every node
            that runs one; each node prepares its own stages.
        in_flight: Most calls that are under way at once; by default one more than stages, which
            keeps all of them busy.

    Raises:
        CapacityError: No nodes hold the stages; nothing has been started.
        InputError: A stage is missing or of another split; the model has changed since it was split
            or differs between nodes; a node's processor has other steps; or this process is not
            connected to a cluster.
    """
    ray = ray_module()
    graph = StageGraph.of(stages)
    most = len(stages) + 1 if in_flight is None else in_flight
    if not 1 <= most <= IN_FLIGHT_MAX:
        raise InputError(f"`in_flight` is {most}; it must be from 1 to {IN_FLIGHT_MAX}.")
    sources = [source_of_stage(stage) for stage in stages]
    needs = [
        StageNeeds(stage.plan.model, stage.plan.peak_bytes + CHANNEL_BYTES, stage.origin.threads)
        for stage in stages
    ]
    here, nodes = ray.get_runtime_context().get_node_id(), alive_nodes()
    place_stages(needs, nodes, {}, here)  # refuses at once what no worker could change
    workers = measured_workers(StageProbe).by_node
    chosen = place_stages(needs, nodes, workers, here)
    memory = [
        need.peak_bytes + workers[node.node_id] for need, node in zip(needs, chosen, strict=True)
    ]
    group = granted(
        [Bundle(node, size, need.threads)
         for need, node, size in zip(needs, chosen, memory, strict=True)],
        stages[0].plan.model,
    )  # fmt: skip
    booked = BookedNodes(
        group, tuple([Place(group, index, 1, size) for index, size in enumerate(memory)])
    )
    actors: list[Any] = []
    try:
        for place, source in zip(booked.places, sources, strict=True):
            actors.append(_started(place, graph, source))
        is_here = all(node.node_id == here for node in chosen)
        return Pipeline(Stages(graph, actors, most, is_here=is_here), booked)
    except BaseException:
        booked.release(actors)
        raise


def _started(place: Place, graph: StageGraph, source: StageSource) -> Any:  # noqa: ANN401
    index = place.index
    plan, threads = graph.stages[index].plan, graph.stages[index].origin.threads
    requirements = Requirements(
        plan.model, plan.weights_bytes, plan.arena_bytes, plan.io_bytes,
        plan.runtime_bytes, plan.runtime_bytes + CHANNEL_BYTES, threads,
    )  # fmt: skip
    sent = [flow.names for flow in graph.sent_by(index)]
    actor = BookedActor(StageActor, place.replica_bytes, threads, stage_name())
    return place.start(actor, source, requirements, sent)


class Pipeline:
    """Stages of one model on the nodes of a cluster.

    Calls run through the stages one behind the other, so that all stages work at once. Several
    threads may call. The pipeline lives until it is closed, or the process that made it ends; then
    nothing of it remains.
    """

    def __init__(self, stages: Stages, booked: BookedNodes) -> None:
        """Wait until all stages have loaded, and open the ways between them."""
        self._booked = booked
        self._calls = CallsInFlight(stages)

    @property
    def stages(self) -> Sequence[Stage]:
        """The stages, in order."""
        return self._calls.stages.graph.stages

    @property
    def transport(self) -> str:
        """Way of values between stages: `channels` of shared memory, or `objects`."""
        return self._calls.stages.transport

    @property
    def actors(self) -> Sequence[Any]:
        """Handles of the stages, in order."""
        return tuple(self._calls.stages.actors)

    def run(
        self, inputs: Mapping[str, Array], *, timeout_s: float | None = None
    ) -> dict[str, Array]:
        """Run the model once.

        Args:
            inputs: An array for every input name.
            timeout_s: Seconds to wait for the result, and before for a place among the calls in
                flight; no limit by default.

        Raises:
            DeadlineError: The timeout passed. The call goes on, and its result is dropped.
            InputError: A name, dtype or shape does not fit, or the pipeline is closed.
            OutOfMemoryError: A stage needs more memory than it has booked.
            StageLostError: A stage ended during the call; it is started again.
        """
        call = self._calls.start(inputs, timeout_s)
        try:
            return call.result(timeout_s)
        except TimeoutError:
            raise DeadlineError(f"The stages gave no result within {timeout_s} s.") from None

    def run_each(self, batches: Iterable[Mapping[str, Array]]) -> Iterator[dict[str, Array]]:
        """Run the model on each of several inputs; yield the results in order.

        As many calls are under way as the pipeline allows, and no further inputs are taken.

        Raises:
            InputError, OutOfMemoryError, StageLostError: The errors of `run`.
        """
        waiting: deque[Any] = deque()
        rest = iter(batches)
        for batch in itertools.islice(rest, self._calls.stages.in_flight):
            waiting.append(self._calls.start(batch, None))
        while waiting:
            yield waiting.popleft().result()
            for batch in itertools.islice(rest, 1):
                waiting.append(self._calls.start(batch, None))

    def status(self) -> list[dict[str, int]]:
        """Return process id, memory and times of each stage; waits for those that start again.

        Raises:
            StageLostError: One that ended does not answer within a minute.
        """
        import ray

        self._calls.stages.load(RESTART_S)
        found: list[dict[str, int]] = ray.get([each.status.remote() for each in self.actors])
        return found

    def close(self) -> None:
        """End the stages and release what is booked; calls under way fail, further ones too."""
        self._calls.close()
        self._booked.release(self.actors)
        self._calls.join()

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
