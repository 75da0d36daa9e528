"""Measures the worker process of Ray, which a replica takes besides its model."""

import gc
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tightship.cluster.process_memory import pss_bytes
from tightship.cluster.ray_state import alive_nodes, on_node, ray_module
from tightship.engine.library import release_heap
from tightship.errors import InputError


class Probe:
    """Actor that imports what a replica imports, and measures its own process."""

    MODULES: tuple[str, ...] = ("tightship.cluster.replica", "tightship.loading.restoring")

    def __init__(self) -> None:
        self._imported = [importlib.import_module(name) for name in self.MODULES]

    def worker_bytes(self) -> int:
        """Return the proportional set size of the worker, in bytes."""
        gc.collect()
        release_heap()
        return pss_bytes()


class ServeProbe(Probe):
    """Actor that imports what a replica of Ray Serve imports too."""

    MODULES = (
        *Probe.MODULES,
        "ray.serve._private.replica",
        "tightship.cluster.inference_calls",
        "tightship.cluster.served_models",
    )


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
    return measured_workers(Probe, nodes)


def measured_workers(kind: type[Probe], nodes: Sequence[str] | None = None) -> WorkerMemory:
    """Measure idle workers with the modules of a kind of probe, as `worker_bytes`."""
    ray = ray_module()
    alive = {node.node_id for node in alive_nodes()}
    wanted = sorted(alive) if nodes is None else list(nodes)
    gone = [node for node in wanted if node not in alive]
    if gone:
        raise InputError(f"Node `{gone[0]}` is not alive; {len(alive)} nodes are.")
    measured = _measured(ray.get_runtime_context().get_job_id(), kind.__name__)
    missing = [node for node in wanted if node not in measured]
    probes = [ray.remote(kind).options(num_cpus=0, **on_node(node)).remote() for node in missing]
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
def _measured(_job: str, _kind: str) -> dict[str, int]:
    """Hold the measurements of a kind of worker, of one connection to a cluster."""
    return {}
