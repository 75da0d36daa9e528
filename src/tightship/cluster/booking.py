"""Turns requirements into options of Ray's actors, which book what a replica takes."""

from typing import Any

from tightship.cluster.replica_memory import Requirements

ANCHOR_BYTES = 16 << 20
"""Bytes that an anchor gains beside an idle worker: threads for calls and for metrics (12 MB)."""


def replica_booking(requirements: Requirements, worker_bytes: int) -> int:
    """Return the bytes that a replica books: its worker process, and what the model adds to it."""
    return worker_bytes + requirements.replica_bytes


def anchor_booking(requirements: Requirements, worker_bytes: int) -> int:
    """Return the bytes that the anchor of a node books: its process, and the weights."""
    return worker_bytes + ANCHOR_BYTES + requirements.node_bytes


def actor_options(
    requirements: Requirements, worker_bytes: int | None = None, *, node: str | None = None
) -> dict[str, Any]:
    """Return options for `ray.remote` or `.options` that book one replica.

    Weights that replicas share are not part of them: an anchor books these once for each node.

    Args:
        requirements: Requirements of the model.
        worker_bytes: Bytes of an idle worker; by default measured, on all nodes if `node` is None,
            of which the largest counts.
        node: Id of the node that the actor must run on; any by default.

    Raises:
        InputError: This process is not connected to a cluster, or the node is not alive.
    """
    from tightship.cluster.ray_state import on_node
    from tightship.cluster.worker import worker_bytes as measured

    if worker_bytes is None:
        worker_bytes = measured(None if node is None else [node]).on(node)
    placed = {} if node is None else on_node(node)
    return {
        "memory": replica_booking(requirements, worker_bytes),
        "num_cpus": requirements.threads,
        **placed,
    }
