"""Starts replicas of a model on the nodes of a cluster, calls them, and ends them."""

import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal

from tightship.cluster.allotment import Demand, allot
from tightship.cluster.booked_nodes import BookedActor
from tightship.cluster.booking import ANCHOR_BYTES
from tightship.cluster.held_nodes import HeldNodes, book, held_bytes
from tightship.cluster.node_file import source_of
from tightship.cluster.ray_state import alive_nodes, ray_module, results_of, startable_nodes
from tightship.cluster.replica import Array, Found, Replica
from tightship.cluster.replica_memory import ModelFile, Shapes, requirements
from tightship.cluster.stage_advice import stages_of
from tightship.cluster.weights_bookings import Holding
from tightship.cluster.worker import worker_bytes
from tightship.errors import DeadlineError, InputError, TightshipError

ATTEMPTS = 2
"""Replicas that a call is given to, if the first ends during the call."""
STATUS_S = 5.0
"""Seconds to wait for the status of a replica, which may be running a model or starting again."""


class ReplicaLostError(TightshipError):
    """The replicas that a call was given to ended before it did."""


def replicas(
    model: ModelFile,
    count: int | Literal["auto"] = "auto",
    *,
    shapes: Shapes | None = None,
    threads: int | None = None,
    share: bool = True,
) -> "ReplicaGroup":
    """Start replicas of a model, each booked exactly and held to its booking.

    Args:
        model: Path of an ONNX file or prepared model, the same bytes on every node that has it; a
            node without it receives the prepared file from another node of the group.
        count: Number of replicas; `"auto"` for as many as the running nodes hold.
        shapes: Shapes for inputs whose dimensions are symbolic: the largest that are accepted.
        threads: Threads of each kernel; by default one, or as the model was prepared for.
        share: Whether the replicas of a node map one copy of the weights.

    Raises:
        CapacityError: No nodes hold the replicas; nothing has been started.
        FormatError, GraphError, InputError: The errors of `requirements`; the model's file differs
            between nodes, or this process is not connected to a cluster.
    """
    ray_module()
    needs = requirements(model, shapes=shapes, threads=threads, share=share)
    wanted = None if count == "auto" else count
    if isinstance(wanted, str):
        raise InputError(f"`count` is `{wanted}`; it must be a number of replicas, or `auto`.")
    nodes = [*alive_nodes(), *startable_nodes()]
    holding = Holding(source_of(model, shapes, needs.threads), needs.node_bytes)
    holdings = [holding] if share else []
    held = held_bytes(holdings)
    first = Demand(needs, count=wanted, held=held, stages=stages_of(model, shapes, needs.threads))
    allot(first, nodes)  # refuses at once what no worker could change
    demand = replace(first, workers=worker_bytes().by_node)
    found = book(demand, nodes, holdings)
    try:
        return ReplicaGroup(demand, found, holding)
    except BaseException:
        found.booked.release()
        raise


class ReplicaGroup:
    """Replicas of one model, with an anchor on each of their nodes.

    Calls go to the replicas in turn. The group lives until it is closed, or the process that made
    it ends; then nothing of it remains.

    Attributes:
        requirements: Memory of the model.
        source: The model, by its path and bytes.
    """

    def __init__(self, demand: Demand, found: HeldNodes, holding: Holding) -> None:
        """Start replicas in the memory that is booked, and wait until all are ready."""
        self.requirements = demand.requirements
        self.source = holding.source
        self._booked = found.booked
        self._anchors = list(found.anchors)
        self._replicas: list[Any] = []
        self._next = itertools.count()
        self._closing = threading.Lock()
        where = Found(
            holding, max(demand.workers.values()) + ANCHOR_BYTES, self.requirements.is_shared
        )
        for place in found.booked.places:
            actor = BookedActor(Replica, place.replica_bytes, self.requirements.threads)
            self._replicas += [
                place.start(actor, where, self.requirements) for _ in range(place.count)
            ]
        results_of([replica.status.remote() for replica in self._replicas])

    @property
    def actors(self) -> Sequence[Any]:
        """Handles of the replicas, for calls that `run` does not cover."""
        return tuple(self._replicas)

    @property
    def anchors(self) -> Sequence[Any]:
        """Handles of the anchors of its nodes, which other groups may use too."""
        return tuple(self._anchors)

    def run(
        self, inputs: Mapping[str, Array], *, timeout_s: float | None = None
    ) -> dict[str, Array]:
        """Run the model once, on the next replica.

        If a replica ends during the call, another gets it.

        Args:
            inputs: An array for every input name.
            timeout_s: Seconds to wait for a replica's result; no limit by default.

        Raises:
            DeadlineError: The timeout passed.
            InputError: A name, dtype or shape does not fit, or the group is closed.
            OutOfMemoryError: The call needs more memory than the replica has booked.
            ReplicaLostError: All replicas that tried ended during the call.
        """
        import ray

        lost: Exception | None = None
        for _ in range(ATTEMPTS):
            replica = self._chosen()
            try:
                (found,) = results_of([replica.run.remote(inputs)], timeout_s)
            except ray.exceptions.RayActorError as error:
                lost = error
                continue
            result: dict[str, Array] = found
            return result
        raise ReplicaLostError(
            f"{ATTEMPTS} replicas of `{self.requirements.model}` ended during the call; the last: "
            f"{lost}"
        )

    def status(self) -> list[dict[str, int]]:
        """Return process id, memory and times of each replica that answers."""
        import ray

        found = []
        for replica in self._replicas:
            try:
                found += results_of([replica.status.remote()], STATUS_S)
            except (ray.exceptions.RayActorError, DeadlineError):
                continue
        return found

    def close(self) -> None:
        """End replicas and anchors, and release what is booked; further calls have no effect."""
        with self._closing:
            self._booked.release()
            for anchor in self._anchors:
                anchor.check.remote()
            self._replicas, self._anchors = [], []

    def __enter__(self) -> "ReplicaGroup":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _chosen(self) -> Any:  # noqa: ANN401
        replicas = self._replicas
        if not replicas:
            raise InputError(
                f"The replicas of `{self.requirements.model}` are closed; start others."
            )
        return replicas[next(self._next) % len(replicas)]
