"""Four replicas of ResNet-50 on one node of Ray: memory, bookings, and time until they are ready.

Tightship's replicas share weights, or do not; ONNX Runtime runs in plain actors. Memory is the sum
of PSS, after every replica has run, without Ray's object store.
"""

import os
import statistics
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.answering_probe import AnsweringProbe
from benchmarks.models import Stored, stored
from tests.cluster.local_cluster import LocalCluster, cluster_of
from tests.cluster.serve_clients import asked, body_of

from tightship import cluster
from tightship.cluster.booking import ANCHOR_BYTES, anchor_booking
from tightship.cluster.process_memory import pss_bytes
from tightship.cluster.replica import Found, Replica
from tightship.cluster.weights_bookings import Holding
from tightship.cluster.worker import measured_workers
from tightship.errors import CapacityError

REPLICAS, RUNS, ROUNDS = 4, 3, 7
CALLS = 100
"""Requests to a deployment, by which every replica answers some."""
PORT, OK = 8195, 200
URL = f"http://127.0.0.1:{PORT}/v2/models/resnet50/infer"
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
            "refusal_ms": refusals(model),
            "replicas": REPLICAS,
            "worker_bytes": cluster.worker_bytes().on(None),
            "shared": of_tightship(model, nodes, share=True),
            "not_shared": of_tightship(model, nodes, share=False),
            "served": of_serve(model),
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
        holding = Holding(group.source, needs.node_bytes)
        found = Found(holding, worker + ANCHOR_BYTES)
        beside = further(group, found, worker, feeds) if share else {}
        booked = REPLICAS * (worker + needs.replica_bytes)
        once = anchor_booking(needs, worker)
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


def further(
    group: cluster.ReplicaGroup, found: Found, worker: int, feeds: Mapping[str, Any]
) -> dict[str, Any]:
    """Measure one more replica beside a group, several times: what it adds, and when it is ready.

    It adds the growth of the sum of PSS less an idle worker that has answered, because the pages
    that it shares with the others were there before.
    """
    import ray

    idle = measured_workers(AnsweringProbe).on(None)
    added, load, ready = [], [], []
    for _ in range(ROUNDS):
        before = sum(each["pss_bytes"] for each in group.status())
        actor = ray.remote(Replica).options(**cluster.actor_options(group.requirements, worker))
        replica = actor.remote(found, group.requirements)
        for _ in range(RUNS):
            ray.get(replica.run.remote(feeds))
        status = ray.get(replica.status.remote())
        after = sum(each["pss_bytes"] for each in group.status())
        added.append(after + status["pss_bytes"] - before - idle)
        load.append(status["load_ns"] / 1e6)
        ready.append(status["ready_ns"] / 1e6)
        ray.kill(replica)
    return {
        "idle_worker_bytes": idle,
        "added_bytes": sorted(added),
        "load_ms": [round(each, 1) for each in sorted(load)],
        "ready_ms": [round(each, 1) for each in sorted(ready)],
    }


def refusals(model: Stored) -> dict[str, float]:
    """Milliseconds until what no node holds is refused: before workers are measured, and after."""
    cluster.requirements(model.model)  # imports and the library
    found = {"first": refused(model)}
    cluster.worker_bytes()
    return found | {"later": refused(model), "threads": refused(model, threads=1 << 10)}


def refused(model: Stored, threads: int = 1) -> float:
    """Milliseconds of a refusal."""
    started = time.perf_counter_ns()
    try:
        cluster.replicas(model.model, 1 << 10, threads=threads)
    except CapacityError:
        return round((time.perf_counter_ns() - started) / 1e6, 1)
    raise AssertionError(threads)


def of_serve(model: Stored) -> dict[str, object]:
    """Memory and bookings of as many replicas of a deployment, after requests in JSON."""
    from ray import serve

    ((name, array),) = dict(np.load(model.feeds)).items()
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})
    handle = serve.run(cluster.deployment(model.model, replicas=REPLICAS))
    body, _ = body_of(name, array, raw=False)
    found: dict[int, dict[str, int]] = {}
    with ThreadPoolExecutor(REPLICAS) as pool:
        for status, answer, _ in pool.map(lambda _: asked(URL, body), range(CALLS)):
            assert status == OK, answer
    while len(found) < REPLICAS:
        each = handle.status.remote().result()
        found[each["pid"]] = each
    taken = sum(each["pss_bytes"] for each in found.values())
    booked = sum(each["booked_bytes"] for each in found.values())
    booked += cluster.requirements(model.model).node_bytes
    serve.shutdown()
    return {
        "pss_bytes": taken,
        "booked_bytes": booked,
        "booked_over_pss": round(booked / taken, 3),
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
