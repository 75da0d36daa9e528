"""Four replicas of ResNet-50 on one node of Ray: memory, bookings, and time until they are ready.

Tightship's replicas share weights, or do not; ONNX Runtime runs in plain actors. Memory is the sum
of PSS, after every replica has run, without Ray's object store.
"""

import os
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.models import Stored, stored
from tests.cluster.local_cluster import LocalCluster, cluster_of

from tightship import cluster
from tightship.cluster.process_memory import pss_bytes
from tightship.cluster.replica import Replica

REPLICAS, RUNS, ROUNDS = 4, 3, 7
NODE_MIB = 2000


class PlainOnnxRuntime:
    """Actor as users write it: a session of one thread."""

    def __init__(self, path: str) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(path, options)

    def run(self, inputs: Any) -> Any:
        """Run once."""
        return self._session.run(None, inputs)

    def status(self) -> dict[str, int]:
        """Memory, as replicas state it."""
        return {"pss_bytes": pss_bytes(), "pid": os.getpid()}


def measured(folder: Path) -> dict[str, object]:
    """Measure all three, one after another, on a node of their own."""
    model = stored("resnet50", folder)
    with cluster_of(NODE_MIB) as nodes:
        return {
            "replicas": REPLICAS,
            "worker_bytes": cluster.worker_bytes().on(None),
            "shared": of_tightship(model, nodes, share=True),
            "not_shared": of_tightship(model, nodes, share=False),
            "onnxruntime": of_onnxruntime(model),
        }


def of_tightship(model: Stored, nodes: LocalCluster, *, share: bool) -> dict[str, object]:
    """Memory, bookings and times of a group of replicas, and of one more beside them."""
    import ray

    feeds = dict(np.load(model.feeds))
    with cluster.replicas(model.model, REPLICAS, share=share) as group:
        for _ in range(RUNS):
            ray.get([each.run.remote(feeds) for each in group.actors])
        status = group.status()
        anchors = ray.get([each.status.remote() for each in group.anchors])
        worker, needs = cluster.worker_bytes().on(None), group.requirements
        beside = further(group, worker, feeds) if share else {}
        booked = REPLICAS * (worker + needs.replica_bytes)
        once = worker + needs.node_bytes if share else 0
    taken = sum(each["pss_bytes"] for each in status)
    kept = sum(each["pss_bytes"] for each in anchors)
    assert nodes.nodes
    return {
        "pss_bytes": taken,
        "anchor_pss_bytes": kept,
        "booked_bytes": booked + needs.node_bytes,
        "booked_over_pss": round((booked + needs.node_bytes) / taken, 3),
        "booked_with_anchor_bytes": booked + once,
        "booked_with_anchor_over_pss": round((booked + once) / (taken + kept), 3),
        "load_ms": [round(each["load_ns"] / 1e6, 1) for each in status],
        "ready_ms": [round(each["ready_ns"] / 1e6, 1) for each in status],
        "median_load_ms": round(statistics.median(s["load_ns"] for s in status) / 1e6, 1),
        "data_headroom_bytes": min(s["data_limit_bytes"] - s["data_bytes"] for s in status),
        "further": beside,
    }


def further(group: cluster.ReplicaGroup, worker: int, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Measure one more replica beside a group, several times: what it adds, and when it is ready.

    It adds the growth of the sum of PSS less an idle worker, because the pages that it shares with
    the others were there before.
    """
    import ray

    path = ray.get(group.anchors[0].file.remote()).path
    added, load, ready = [], [], []
    for _ in range(ROUNDS):
        before = sum(each["pss_bytes"] for each in group.status())
        actor = ray.remote(Replica).options(**cluster.actor_options(group.requirements, worker))
        replica = actor.remote(path, group.requirements)
        for _ in range(RUNS):
            ray.get(replica.run.remote(feeds))
        status = ray.get(replica.status.remote())
        after = sum(each["pss_bytes"] for each in group.status())
        added.append(after + status["pss_bytes"] - before - worker)
        load.append(status["load_ns"] / 1e6)
        ready.append(status["ready_ns"] / 1e6)
        ray.kill(replica)
    return {
        "added_bytes": sorted(added),
        "load_ms": [round(each, 1) for each in sorted(load)],
        "ready_ms": [round(each, 1) for each in sorted(ready)],
    }


def of_onnxruntime(model: Stored) -> dict[str, object]:
    """Memory of as many plain actors."""
    import ray

    feeds = dict(np.load(model.feeds))
    actor = ray.remote(PlainOnnxRuntime)
    found = [actor.remote(str(model.model)) for _ in range(REPLICAS)]
    for _ in range(RUNS):
        ray.get([each.run.remote(feeds) for each in found])
    taken = sum(each["pss_bytes"] for each in ray.get([each.status.remote() for each in found]))
    for each in found:
        ray.kill(each)
    return {"pss_bytes": taken}
