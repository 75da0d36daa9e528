"""Books replicas, and beside them what their nodes hold once, shared with all others there."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tightship.cluster.allotment import Demand, allot, replicas_on
from tightship.cluster.anchor import Anchor
from tightship.cluster.booked_nodes import PLACED_S, BookedNodes, Bundle, Place, granted
from tightship.cluster.booking import ANCHOR_BYTES
from tightship.cluster.nodes import Node
from tightship.cluster.ray_state import alive_nodes, on_node, startable_nodes
from tightship.cluster.weights_bookings import (
    NAMESPACE,
    Holding,
    anchor_name,
    anchored_nodes,
    replicas_name,
    weights_on,
)
from tightship.errors import CapacityError

CALLS = 8
"""Calls that an anchor answers at once, so that preparing a model does not hold up the others."""
RETRY_S = 0.2
RENEWED_S = 10.0
"""Seconds until a node that was started has its memory free again for what it was started for."""


@dataclass(frozen=True, slots=True)
class HeldNodes:
    """Places for replicas, and the anchors of their nodes in the same order."""

    booked: BookedNodes
    anchors: tuple[Any, ...]


def held_bytes(holdings: Sequence[Holding]) -> dict[str, int]:
    """Return the bytes of these weights that each node has booked, of those with an anchor."""
    found = weights_on()
    return {
        node: sum(each.weights_bytes for each in holdings if each.source.key in found.get(node, ()))
        for node in anchored_nodes()
    }


def anchor_bytes(demand: Demand, nodes: Sequence[Node]) -> dict[str, int]:
    """Return the memory of an anchor without weights by node."""
    return {node.node_id: demand.worker_bytes(node) + ANCHOR_BYTES for node in nodes}


def book(demand: Demand, nodes: Sequence[Node], holdings: Sequence[Holding]) -> HeldNodes:
    """Book the replicas that a demand is allotted, and once on each node an anchor and the weights.

    Raises:
        CapacityError: The nodes do not hold them, or others booked the memory meanwhile.
    """
    allotted = allot(demand, nodes)
    found = _places(demand, nodes, allotted)
    if not all(node.is_running for node, _ in found):
        return book(demand, _started(demand, found), holdings)
    bundles = [_bundle(demand, node, count) for node, count in found]
    try:
        group = granted(bundles, demand.requirements.model, replicas_name(holdings))
    except CapacityError:
        allot(demand, [*alive_nodes(), *startable_nodes()])  # refuses with what is booked by now
        raise
    booked = BookedNodes(
        group,
        tuple([
            Place(group, index, count, demand.replica_bytes(node))
            for index, (node, count) in enumerate(found)
        ]),
    )  # fmt: skip
    try:
        anchors = hold_on(anchor_bytes(demand, [node for node, _ in found]), holdings)
    except BaseException:
        booked.release()
        raise
    return HeldNodes(booked, tuple(anchors))


def hold_on(
    anchors: Mapping[str, int], holdings: Sequence[Holding], within_s: float = PLACED_S
) -> list[Any]:
    """Book weights on nodes that have not booked them yet; return the anchors.

    Args:
        anchors: Memory of an anchor by node, which is started if the node has none.
        holdings: The weights.
        within_s: Seconds until it is given up.

    Raises:
        CapacityError: A node has no room for its anchor or for the weights.
    """
    if len(anchors) == 1:
        return [_held(node, size, holdings, within_s) for node, size in anchors.items()]
    with ThreadPoolExecutor(max(1, len(anchors))) as pool:
        return list(pool.map(lambda node: _held(node, anchors[node], holdings, within_s), anchors))


def anchor_on(node: str, memory_bytes: int) -> Any:  # noqa: ANN401
    """Return the anchor of a node, which is started if there is none."""
    import ray

    with suppress(ValueError):
        return ray.get_actor(anchor_name(node), NAMESPACE)
    options = {"memory": memory_bytes, "num_cpus": 0, "max_restarts": -1, **on_node(node)}
    actor = ray.remote(Anchor).options(
        name=anchor_name(node),
        namespace=NAMESPACE,
        lifetime="detached",
        get_if_exists=True,
        max_concurrency=CALLS,
        **options,
    )
    return actor.remote()


def _held(
    node: str,
    memory_bytes: int,
    holdings: Sequence[Holding],
    within_s: float,
) -> Any:  # noqa: ANN401
    import ray

    end = time.monotonic() + within_s
    while True:
        anchor = anchor_on(node, memory_bytes)
        try:
            ray.get(anchor.hold.remote(holdings), timeout=max(0.0, end - time.monotonic()))
        except ray.exceptions.GetTimeoutError:
            if not _is_placed(anchor):
                ray.kill(anchor)
            raise CapacityError(
                f"Node {node} did not grant {memory_bytes} bytes for an anchor within {within_s} "
                "s; others may have booked them; try again.",
                needed_bytes=memory_bytes,
                limit_bytes=0,
            ) from None
        except ray.exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None)
            raise cause if isinstance(cause, Exception) else error from None
        except ray.exceptions.RayActorError:  # it ended, because nothing needed it until now
            if time.monotonic() > end:
                raise
            time.sleep(RETRY_S)
        else:
            return anchor


def _is_placed(anchor: Any) -> bool:  # noqa: ANN401
    from ray._private.state import actors

    return bool(actors(anchor._actor_id.hex()).get("State") in {"ALIVE", "RESTARTING"})


def _started(demand: Demand, found: Sequence[tuple[Node, int]]) -> list[Node]:
    """Start nodes of the types that an autoscaler has; return all nodes once they are free."""
    bundles = [_bundle(demand, node, count, demand.once_bytes(node)) for node, count in found]
    BookedNodes(granted(bundles, demand.requirements.model), ()).release()
    end = time.monotonic() + RENEWED_S
    while True:
        nodes = alive_nodes()
        try:
            allot(demand, nodes)
        except CapacityError:
            if time.monotonic() > end:
                raise
            time.sleep(RETRY_S)
        else:
            return nodes


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


def _bundle(demand: Demand, node: Node, count: int, once_bytes: int = 0) -> Bundle:
    memory = once_bytes + count * demand.replica_bytes(node)
    return Bundle(node, memory, count * demand.requirements.threads)
