"""Books memory and processors for anchors and replicas, all of them or nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tightship.cluster.allotment import Demand, allot, replicas_on
from tightship.cluster.nodes import Node
from tightship.cluster.ray_state import alive_nodes, startable_nodes
from tightship.errors import CapacityError

PLACED_S, STARTED_S = 10.0, 600.0
"""Seconds until a booking on running nodes, or on nodes that must start first, is given up."""
RESTARTS_ENDLESS = -1


@dataclass(frozen=True, slots=True)
class Place:
    """Part of a node that is booked.

    Attributes:
        group: Placement group of Ray.
        index: Index of the bundle in it.
        count: Number of replicas.
        replica_bytes: Memory booked for each of them.
        once_bytes: Memory booked for the anchor.
    """

    group: Any
    index: int
    count: int
    replica_bytes: int
    once_bytes: int

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

    def release(self) -> None:
        """End all actors in these places and return their memory; further calls do nothing."""
        import ray
        from ray.util.placement_group import remove_placement_group

        if ray.is_initialized():
            remove_placement_group(self.group)


def book(demand: Demand, nodes: Sequence[Node]) -> BookedNodes:
    """Book the replicas that a demand is allotted, and an anchor on each node.

    Raises:
        CapacityError: The nodes do not hold them, or others booked the memory meanwhile.
    """
    from ray.util.placement_group import placement_group, remove_placement_group

    found = _places(demand, nodes, allot(demand, nodes))
    group = placement_group(
        [_bundle(demand, node, count) for node, count in found],
        strategy="SPREAD",
        bundle_label_selector=[
            {"ray.io/node-id": node.node_id} if node.is_running else {} for node, _ in found
        ],
    )
    must_start = any(not node.is_running for node, _ in found)
    try:
        is_ready = group.wait(timeout_seconds=STARTED_S if must_start else PLACED_S)
    except BaseException:
        remove_placement_group(group)
        raise
    if not is_ready:
        remove_placement_group(group)
        allot(demand, [*alive_nodes(), *startable_nodes()])  # refuses with what is booked by now
        needed = sum(int(_bundle(demand, node, count)["memory"]) for node, count in found)
        raise CapacityError(
            f"`{demand.requirements.model}`: Ray did not grant {needed} bytes on {len(found)} "
            "nodes in time, although they were free; try again.",
            needed_bytes=needed,
            limit_bytes=sum(node.free_bytes for node, _ in found),
        )
    places = [
        Place(group, index, count, demand.replica_bytes(node), demand.once_bytes(node))
        for index, (node, count) in enumerate(found)
    ]
    return BookedNodes(group, tuple(places))


def _places(
    demand: Demand, nodes: Sequence[Node], allotted: Mapping[str, int]
) -> list[tuple[Node, int]]:
    """Return a node and its replicas for each place; a type of node once for each node of it."""
    found = []
    for node in nodes:
        left, most = allotted.get(node.node_id, 0), replicas_on(demand, node)
        while left:
            found.append((node, min(left, most)))
            left -= found[-1][1]
    return found


def _bundle(demand: Demand, node: Node, count: int) -> dict[str, float]:
    memory = demand.once_bytes(node) + count * demand.replica_bytes(node)
    return {"CPU": float(count * demand.requirements.threads), "memory": float(memory)}
