"""Decides how many replicas each node gets, or refuses with the numbers; knows no Ray.

A node holds, besides its replicas, one anchor, the worker process that keeps models, and their
weights; what it has of these counts no second time. Nodes that hold most are filled first, so that
few copies of the weights exist.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tightship.cluster.booking import ANCHOR_BYTES, anchor_booking, replica_booking
from tightship.cluster.nodes import Node
from tightship.cluster.replica_memory import Requirements
from tightship.errors import CapacityError, InputError
from tightship.quantity import format_bytes, format_limit

SHOWN_MAX = 8
"""Most nodes that a refusal lists."""
ID_SHOWN = 12
"""Characters of a node's id that tell it apart."""
Stages = Callable[[Sequence[Node], int], int | None]
"""Fewest stages of a model for nodes, by them and the bytes of an idle worker; None if unknown."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Replicas of one model that are wanted.

    Attributes:
        requirements: Memory of the model.
        workers: Bytes of an idle worker by node; nodes left out count as the largest of them.
        count: Number of replicas; None for as many as the nodes hold.
        held: Bytes of the weights that nodes have booked already, of those that have an anchor.
        stages: Function that finds the fewest stages into which the model can be cut for nodes.
        serving_bytes: Bytes of an idle replica of Ray Serve, on any node; None for an actor.
        keeper_bytes: Bytes of a further process, of which one node has one.
    """

    requirements: Requirements
    workers: Mapping[str, int] = field(default_factory=dict)
    count: int | None = None
    held: Mapping[str, int] = field(default_factory=dict)
    stages: Stages | None = None
    serving_bytes: int | None = None
    keeper_bytes: int = 0

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise InputError(f"`replicas` is {self.count}; it must be at least 1, or `auto`.")

    def worker_bytes(self, node: Node) -> int:
        """Return the bytes of an idle worker on a node."""
        return self.workers.get(node.node_id, max(self.workers.values(), default=0))

    def replica_bytes(self, node: Node) -> int:
        """Return the bytes that each replica books on a node."""
        return replica_booking(self.requirements, self.replica_worker_bytes(node))

    def replica_worker_bytes(self, node: Node) -> int:
        """Return the bytes of a replica on a node without its model."""
        return self.worker_bytes(node) if self.serving_bytes is None else self.serving_bytes

    def once_bytes(self, node: Node) -> int:
        """Return the bytes to book once on a node: its anchor and the weights that it lacks."""
        held = self.held.get(node.node_id)
        if held is None:
            return anchor_booking(self.requirements, self.worker_bytes(node))
        return self.requirements.node_bytes - held


def replicas_on(demand: Demand, node: Node, *, empty: bool = False) -> int:
    """Count the replicas that a node holds, beside what is booked on it or as if `empty`."""
    memory = node.memory_bytes if empty else node.free_bytes
    cpus = node.cpus if empty else node.free_cpus
    rest = memory - demand.once_bytes(node)
    by_memory = max(0, rest // demand.replica_bytes(node))
    return int(min(by_memory, cpus // demand.requirements.threads))


def allot(demand: Demand, nodes: Sequence[Node]) -> dict[str, int]:
    """Return replicas by node, without the nodes that get none.

    Running nodes are filled before types of node that an autoscaler can start. Of a type the result
    counts all its nodes together.

    Raises:
        CapacityError: The nodes do not hold them; the message has the numbers of each node, and the
            smallest node that would hold a replica.
    """
    capacities = [(node, replicas_on(demand, node)) for node in nodes]
    capacities.sort(key=lambda pair: (not pair[0].is_running, -pair[1], pair[0].node_id))
    found: dict[str, int] = {}
    for node, capacity in capacities:
        left = None if demand.count is None else demand.count - sum(found.values())
        if not node.is_running and demand.count is None and found:
            break  # starting nodes is for a number that was asked for
        most = capacity * node.count
        taken = most if left is None else min(left, most)
        if taken:
            found[node.node_id] = taken
    if not found or sum(found.values()) < (demand.count or 1):
        raise _refusal(demand, capacities)
    return found


def _refusal(demand: Demand, capacities: Sequence[tuple[Node, int]]) -> CapacityError:
    needs, wanted = demand.requirements, demand.count or 1
    held = sum(capacity * node.count for node, capacity in capacities)
    worker = max((demand.worker_bytes(node) for node, _ in capacities), default=0)
    serving = worker if demand.serving_bytes is None else demand.serving_bytes
    once = anchor_booking(needs, worker)
    least = once + replica_booking(needs, serving) + demand.keeper_bytes
    lines = [_node_line(node, capacity) for node, capacity in capacities[:SHOWN_MAX]]
    if len(capacities) > SHOWN_MAX:
        lines.append(f"{len(capacities) - SHOWN_MAX} further nodes")
    text = (
        f"`{needs.model}`: {wanted} replica(s) do not fit; the nodes hold {_bound(demand)}{held}. "
        f"{_parts(demand, worker, serving)} {'; '.join(lines) or 'The cluster has no nodes'}. "
        f"{_advice(demand, [node for node, _ in capacities], held, least)}"
    )
    most = max((node.free_bytes for node, _ in capacities), default=0)
    return CapacityError(text, needed_bytes=least, limit_bytes=most)


def _parts(demand: Demand, worker: int, serving: int) -> str:
    needs = demand.requirements
    own = "" if needs.is_shared else f"weights {format_bytes(needs.weights_bytes)}, "
    room = f", requests {format_bytes(needs.request_bytes)}" if needs.request_bytes else ""
    text = (
        f"A replica takes {format_bytes(replica_booking(needs, serving))} (worker process "
        f"{_measured(serving)}, {own}arena {format_bytes(needs.arena_bytes)}, inputs and outputs "
        f"{format_bytes(needs.io_bytes)}, runtime {format_bytes(needs.runtime_bytes)}{room}) and "
        f"{needs.threads} processor(s)"
    )
    keeper = demand.keeper_bytes
    one = f", and one of the nodes {format_bytes(keeper)} for a keeper" if keeper else ""
    anchor, weights = _measured(worker, ANCHOR_BYTES), format_bytes(needs.node_bytes)
    return (
        f"{text}; a node {format_bytes(anchor_booking(needs, worker))} once (anchor process "
        f"{anchor}, weights {weights}){one}."
    )


def _node_line(node: Node, capacity: int) -> str:
    if node.is_running:
        name = f"Node {node.node_id[:ID_SHOWN]}"
    else:
        name = f"{node.count} startable node(s) `{node.node_id}`, each"
    return (
        f"{name} has {format_bytes(node.free_bytes)} free of {format_bytes(node.memory_bytes)} and "
        f"{node.free_cpus:g} of {node.cpus:g} processors ({capacity} replicas)"
    )


def _advice(demand: Demand, nodes: Sequence[Node], held: int, least: int) -> str:
    threads = demand.requirements.threads
    if held:
        return f"Ask for at most {held}, or add nodes."
    if any(replicas_on(demand, node, empty=True) for node in nodes):
        return "A node would hold one without what others have booked; end them, or add a node."
    text = (
        f"The smallest node that would hold one has {_beyond(demand)}{format_limit(least)} of "
        f"memory and {threads} processor(s)"
    )
    idle = max((demand.worker_bytes(node) for node in nodes), default=0)
    stages = None if demand.stages is None else demand.stages(nodes, idle)
    if stages is None:
        return f"{text}."
    bound = "" if demand.workers else "at least "
    return (
        f"{text}; {bound}{stages} stage(s) of `tightship.cluster.split` and `pipeline` fit these "
        "nodes."
    )


def _measured(worker: int, added: int = 0) -> str:
    return format_bytes(worker + added) if worker else "not measured yet"


def _bound(demand: Demand) -> str:
    """Qualify a number of replicas, of which workers that are not measured leave fewer."""
    return "" if demand.workers else "at most "


def _beyond(demand: Demand) -> str:
    """Qualify bytes to which workers that are not measured add."""
    return "" if demand.workers else "more than "
