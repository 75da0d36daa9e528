"""Status of a cluster: its nodes, and the anchors, replicas and stages of Tightship on each."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from tightship.cluster.ray_state import alive_nodes, ray_module
from tightship.cluster.stage_actor import STAGE
from tightship.cluster.weights_bookings import anchor_name

ANSWER_S = 5.0
"""Seconds that all anchors and stages together have to answer."""


def status() -> list[dict[str, Any]]:
    """Return the nodes that are alive, with the processes of Tightship on each.

    Anchors measure the replicas of their node, also those that are busy; stages of pipelines
    measure themselves. What does not answer in time is missing, an anchor with its replicas.

    Returns:
        For each node `node_id`, `memory_bytes`, `free_bytes`, `cpus`, `free_cpus` and `processes`;
        each of these has `kind`, `pid`, `model`, `booked_bytes` (what is planned for it) and
        `pss_bytes` (what it takes now).

    Raises:
        InputError: This process is not connected to a cluster.
    """
    found = _processes()
    return [
        {
            key: value
            for key, value in {**asdict(node), "processes": found.get(node.node_id, [])}.items()
            if key not in {"count", "is_running"}
        }
        for node in alive_nodes()
    ]


def _processes() -> dict[str, list[dict[str, Any]]]:
    ray = ray_module()
    asked = [actor.located.remote() for actor in _measuring()]
    if not asked:
        return {}
    ready, _ = ray.wait(asked, num_returns=len(asked), timeout=ANSWER_S)
    found: dict[str, list[dict[str, Any]]] = {}
    for reference in ready:
        try:
            node, processes = ray.get(reference)
        except ray.exceptions.RayError:
            continue
        found.setdefault(node, []).extend(processes)
    return found


def _measuring() -> Iterator[Any]:
    """Yield the actors of all jobs that measure processes."""
    ray = ray_module()
    for each in ray.util.list_named_actors(all_namespaces=True):
        if each["name"].startswith((anchor_name(""), STAGE)):
            try:
                yield ray.get_actor(each["name"], each["namespace"])
            except ValueError:  # it has ended since
                continue
