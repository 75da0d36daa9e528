"""Books memory and processors on nodes, all of them or nothing, and starts actors there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tightship.cluster.nodes import Node
from tightship.errors import CapacityError

PLACED_S, STARTED_S = 30.0, 600.0
"""Seconds until a booking on running nodes, or on nodes that must start first, is given up.

Ray answers within a second unless the processors have other work, as tests of two processes do."""
RESTARTS_ENDLESS = -1


@dataclass(frozen=True, slots=True)
class Place:
    """Part of a node that is booked.

    Attributes:
        group: Placement group of Ray.
        index: Index of the bundle in it.
        count: Number of replicas.
        replica_bytes: Memory booked for each of them.
    """

    group: Any
    index: int
    count: int
    replica_bytes: int

    def start(self, actor: "BookedActor", *arguments: object) -> Any:  # noqa: ANN401
        """Start an actor in this place, which Ray restarts whenever it ends.

        The arguments must not contain handles of actors: Ray keeps these apart, and a restart fails
        once they are gone. Give names instead.
        """
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        return (
            ray.remote(actor.kind)
            .options(
                memory=actor.memory_bytes,
                num_cpus=actor.cpus,
                name=actor.name,
                max_restarts=RESTARTS_ENDLESS,
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    self.group, placement_group_bundle_index=self.index
                ),
            )
            .remote(*arguments)
        )


@dataclass(frozen=True, slots=True)
class BookedActor:
    """Class of an actor with what it books, and the name by which others find it."""

    kind: type
    memory_bytes: int
    cpus: int
    name: str | None = None


@dataclass(frozen=True, slots=True)
class BookedNodes:
    """Places on nodes, released together."""

    group: Any
    places: tuple[Place, ...]

    def release(self, actors: Sequence[Any] = ()) -> None:
        """End all actors in these places and return their memory; further calls do nothing.

        Args:
            actors: Those that were started here. Ray would keep each as one that restarts, without
                a place to do so, until the job ends.
        """
        import ray
        from ray.util.placement_group import remove_placement_group

        if ray.is_initialized():
            remove_placement_group(self.group)
            for actor in actors:
                ray.kill(actor)


@dataclass(frozen=True, slots=True)
class Bundle:
    """Memory and processors to book on a node."""

    node: Node
    memory_bytes: int
    cpus: int


def granted(
    bundles: Sequence[Bundle], model: str, name: str = "", *, lifetime: str | None = None
) -> Any:  # noqa: ANN401
    """Book bundles, all or none, and return their placement group.

    Args:
        bundles: Amounts that the nodes have free.
        model: Name of the model in reports.
        name: Name of the placement group.
        lifetime: `detached` for one that outlives the process that makes it.

    Raises:
        CapacityError: Others booked the memory meanwhile, or a node did not start.
    """
    from ray.util.placement_group import placement_group, remove_placement_group

    group = placement_group(
        [{"CPU": float(each.cpus), "memory": float(each.memory_bytes)} for each in bundles],
        strategy="SPREAD",
        name=name,
        lifetime=lifetime,
        bundle_label_selector=[
            {"ray.io/node-id": each.node.node_id} if each.node.is_running else {}
            for each in bundles
        ],
    )
    must_start = any(not each.node.is_running for each in bundles)
    try:
        is_ready = group.wait(timeout_seconds=STARTED_S if must_start else PLACED_S)
    except BaseException:
        remove_placement_group(group)
        raise
    if is_ready:
        return group
    remove_placement_group(group)
    needed = sum(each.memory_bytes for each in bundles)
    raise CapacityError(
        f"`{model}`: Ray did not grant {needed} bytes on {len(bundles)} nodes in time, although "
        "they were free; try again.",
        needed_bytes=needed,
        limit_bytes=sum(each.node.free_bytes for each in bundles),
    )
