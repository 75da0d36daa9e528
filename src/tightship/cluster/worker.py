"""Measures the worker process of Ray, which a replica takes besides its model."""

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tightship.cluster.process_memory import pss_bytes
from tightship.cluster.ray_state import alive_nodes, on_node, ray_module
from tightship.errors import InputError


class Probe:
    """Actor that imports what a replica imports, and measures its own process."""

    def __init__(self) -> None:
        from tightship.cluster import replica
        from tightship.loading import restoring

        self._imported = (replica, restoring)

    def worker_bytes(self) -> int:
        """Return the proportional set size of the worker, in bytes."""
        gc.collect()
        return pss_bytes()


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    """Bytes of an idle worker on each node, by node id."""

    by_node: Mapping[str, int]

    def on(self, node: str | None) -> int:
        """Return the bytes on a node, or for None the most on any, where a worker may start."""
        return max(self.by_node.values()) if node is None else self.by_node[node]


def worker_bytes(nodes: Sequence[str] | None = None) -> WorkerMemory:
    """Measure an idle worker of Ray on each node, with the modules that a replica imports.

    A node is measured once for a cluster that this process is connected to. The measurement takes
    one short-lived worker on each node and books nothing.

    Args:
        nodes: Ids of the nodes; by default all that are alive.

    Raises:
        InputError: This process is not connected to a cluster, or a node is not alive.
    """
    ray = ray_module()
    alive = {node.node_id for node in alive_nodes()}
    wanted = sorted(alive) if nodes is None else list(nodes)
    gone = [node for node in wanted if node not in alive]
    if gone:
        raise InputError(f"Node `{gone[0]}` is not alive; {len(alive)} nodes are.")
    measured = _measured(ray.get_runtime_context().get_job_id())
    missing = [node for node in wanted if node not in measured]
    probes = [ray.remote(Probe).options(num_cpus=0, **on_node(node)).remote() for node in missing]
    try:
        for node, found in zip(
            missing, ray.get([probe.worker_bytes.remote() for probe in probes]), strict=True
        ):
            measured[node] = found
    finally:
        for probe in probes:
            ray.kill(probe)
    return WorkerMemory({node: measured[node] for node in wanted})


@cache
def _measured(_job: str) -> dict[str, int]:
    """Hold the measurements of one connection to a cluster."""
    return {}
