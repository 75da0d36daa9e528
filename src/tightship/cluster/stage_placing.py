"""Decides which node runs each stage, or refuses with the numbers; knows no Ray."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tightship.cluster.allotment import ID_SHOWN, SHOWN_MAX
from tightship.cluster.nodes import Node
from tightship.errors import CapacityError
from tightship.quantity import format_bytes

TRIES_MAX = 100_000
"""Most nodes that are tried for all stages together."""


@dataclass(frozen=True, slots=True)
class StageNeeds:
    """Memory and processors of one stage, besides its worker process.

    Attributes:
        name: Name of the stage in reports.
        peak_bytes: Peak of its plan.
        threads: Threads of each kernel.
    """

    name: str
    peak_bytes: int
    threads: int


def place_stages(
    needs: Sequence[StageNeeds],
    nodes: Sequence[Node],
    workers: Mapping[str, int],
    first: str | None = None,
) -> list[Node]:
    """Return a running node for each stage, with free memory and processors for all of its stages.

    One node is tried for all stages before several, because values cross fastest within a node.

    Args:
        needs: Stages in order.
        nodes: Nodes of the cluster.
        workers: Bytes of an idle worker by node; nodes left out count as the largest of them.
        first: Id of the node to prefer, on which the calling process runs.

    Raises:
        CapacityError: No nodes hold them; the message has what each stage takes, and each node has.
    """
    running = [node for node in nodes if node.is_running]
    running.sort(key=lambda node: (node.node_id != first, -node.free_bytes, node.node_id))
    most = max(workers.values(), default=0)
    worker = {node.node_id: workers.get(node.node_id, most) for node in running}
    alone = [[node] * len(needs) for node in running]
    for chosen in alone:
        if _fits(needs, chosen, worker):
            return chosen
    found = _searched(needs, running, worker)
    if found is None:
        raise _refusal(needs, running, worker)
    return found


def _fits(needs: Sequence[StageNeeds], chosen: Sequence[Node], worker: Mapping[str, int]) -> bool:
    for node in {each.node_id: each for each in chosen}.values():
        own = [need for need, where in zip(needs, chosen, strict=True) if where is node]
        taken = sum(need.peak_bytes + worker[node.node_id] for need in own)
        if taken > node.free_bytes or sum(need.threads for need in own) > node.free_cpus:
            return False
    return True


def _searched(
    needs: Sequence[StageNeeds], nodes: Sequence[Node], worker: Mapping[str, int]
) -> list[Node] | None:
    """Try nodes for the largest stage first; give up after `TRIES_MAX`."""
    order = sorted(range(len(needs)), key=lambda stage: -needs[stage].peak_bytes)
    memory = {node.node_id: node.free_bytes for node in nodes}
    cpus = {node.node_id: node.free_cpus for node in nodes}
    chosen: dict[int, Node] = {}
    tries = 0

    def fill(position: int) -> bool:
        nonlocal tries
        if position == len(order):
            return True
        need = needs[order[position]]
        for node in sorted(nodes, key=lambda node: memory[node.node_id]):
            taken, name = need.peak_bytes + worker[node.node_id], node.node_id
            tries += 1
            if memory[name] < taken or cpus[name] < need.threads or tries > TRIES_MAX:
                continue
            memory[name] -= taken
            cpus[name] -= need.threads
            chosen[order[position]] = node
            if fill(position + 1):
                return True
            memory[name] += taken
            cpus[name] += need.threads
        return False

    return [chosen[stage] for stage in range(len(needs))] if fill(0) else None


def _refusal(
    needs: Sequence[StageNeeds], nodes: Sequence[Node], worker: Mapping[str, int]
) -> CapacityError:
    idle = max(worker.values(), default=0)
    stages = [
        f"{need.name} takes {format_bytes(need.peak_bytes + idle)} (plan "
        f"{format_bytes(need.peak_bytes)}, worker process {format_bytes(idle)}) and "
        f"{need.threads} processor(s)"
        for need in needs
    ]
    rows = [
        f"node {node.node_id[:ID_SHOWN]} has {format_bytes(node.free_bytes)} free of "
        f"{format_bytes(node.memory_bytes)} and {node.free_cpus:g} of {node.cpus:g} processors"
        for node in nodes[:SHOWN_MAX]
    ]
    if len(nodes) > SHOWN_MAX:
        rows.append(f"{len(nodes) - SHOWN_MAX} further nodes")
    needed = sum(need.peak_bytes + idle for need in needs)
    free = sum(node.free_bytes for node in nodes)
    return CapacityError(
        f"The {len(needs)} stages do not fit the free memory of the cluster: {'; '.join(stages)}; "
        f"{'; '.join(rows) or 'the cluster has no nodes'}. Split the model for budgets that leave "
        "room for a worker process on each node, end what others have booked, or add a node.",
        needed_bytes=needed,
        limit_bytes=free,
    )
