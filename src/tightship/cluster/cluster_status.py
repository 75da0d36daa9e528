"""Status of a cluster: its nodes, and the anchors and replicas of Tightship on each."""

from dataclasses import asdict
from typing import Any

from tightship.cluster.ray_state import alive_nodes, ray_module
from tightship.cluster.weights_bookings import NAMESPACE, anchor_name, anchored_nodes

ANSWER_S = 5.0
"""Seconds that all anchors together have to answer."""


def status() -> list[dict[str, Any]]:
    """Return the nodes that are alive, with the processes of Tightship on each.

    Anchors measure the replicas of their node, also those that are busy. An anchor that does not
    answer in time is missing with them.

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
    asked = []
    for node in anchored_nodes():
        try:
            actor = ray.get_actor(anchor_name(node), NAMESPACE)
        except ValueError:  # it has ended since
            continue
        asked.append(actor.located.remote())
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
