"""Weights that a node books once for all that share them, as placement groups of Ray.

A booking belongs to no replica, group or deployment: the anchor of its node makes it, and removes
it when nothing needs it any more. It outlives the process of the anchor, which Ray may start again.
What is needed follows from what Ray knows, so that an anchor which started again knows it too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any
from uuid import uuid4

from tightship.cluster.node_file import Source
from tightship.cluster.ray_state import alive_nodes

PREFIX = "tightship"
"""Start of the names of what a cluster has of Tightship."""
NAMESPACE = "tightship"
"""Namespace of anchors and bookings, which all jobs of a cluster share."""
KEEPER = "tightship-keeper"
"""End of the names of the keepers of deployments."""
ANSWER_S = 5.0
"""Seconds that all keepers together have to say what they need."""


@dataclass(frozen=True, slots=True)
class Holding:
    """Weights that a node holds once.

    Attributes:
        source: Model that they belong to.
        weights_bytes: Bytes to book.
    """

    source: Source
    weights_bytes: int


@dataclass(frozen=True, slots=True)
class Needs:
    """Weights that replicas need on a node.

    Attributes:
        keys: Keys of the weights.
        is_used: Whether replicas have memory booked there, or may have.
        is_certain: Whether all answered that were asked; otherwise more may be needed.
    """

    keys: frozenset[str]
    is_used: bool
    is_certain: bool


def anchor_name(node: str) -> str:
    """Return the name of the anchor of a node, of this version of Tightship."""
    return f"{PREFIX}:anchor:{_version()}:{node}"


@cache
def _version() -> str:
    return version("tightship")


def anchored_nodes() -> set[str]:
    """Return the ids of the nodes that have an anchor."""
    import ray

    start = anchor_name("")
    return {
        each["name"].removeprefix(start)
        for each in ray.util.list_named_actors(all_namespaces=True)
        if each["name"].startswith(start)
    }


def replicas_name(holdings: Sequence[Holding]) -> str:
    """Return a new name for the placement group of replicas, which tells what they need."""
    return f"{PREFIX}:replicas:{uuid4().hex}:{','.join(each.source.key for each in holdings)}"


def weights_name(node: str, key: str) -> str:
    """Return the name of the placement group that books weights on a node."""
    return f"{PREFIX}:weights:{node}:{key}"


def weights_on() -> dict[str, dict[str, str]]:
    """Return the ids of the bookings of weights by node and key."""
    found: dict[str, dict[str, str]] = {}
    for name, group in _groups("weights"):
        if group["state"] == "CREATED":
            node, key = name
            found.setdefault(node, {})[key] = group["placement_group_id"]
    return found


def release(group_id: str) -> None:
    """Remove a booking."""
    import ray
    from ray.util.placement_group import PlacementGroup, remove_placement_group

    remove_placement_group(PlacementGroup(ray.PlacementGroupID(bytes.fromhex(group_id))))


def release_of_lost_nodes() -> None:
    """Remove the bookings of nodes that have ended."""
    alive = {node.node_id for node in alive_nodes()}
    for (node, _), group in _groups("weights"):
        if node not in alive:
            release(group["placement_group_id"])


def needs_on(node: str) -> Needs:
    """Return what groups of replicas and deployments need on a node."""
    keys: set[str] = set()
    is_used = False
    for (_, listed), group in _groups("replicas"):
        places = group["bundles_to_node_id"].values()
        if node in places or "" in places:
            is_used = True
            keys |= set(filter(None, listed.split(",")))
    kept, is_certain = _kept_on(node)
    return Needs(frozenset(keys | kept), is_used or bool(kept), is_certain)


def _kept_on(node: str) -> tuple[set[str], bool]:
    """Return the keys that keepers of deployments need on a node, and whether all answered."""
    import ray

    asked = []
    for each in ray.util.list_named_actors(all_namespaces=True):
        if each["name"].endswith(f"::{KEEPER}"):
            try:
                keeper = ray.get_actor(each["name"], each["namespace"])
            except ValueError:  # it has ended since
                continue
            asked.append(keeper.keys.remote(node))
    if not asked:
        return set(), True
    ready, late = ray.wait(asked, num_returns=len(asked), timeout=ANSWER_S)
    found: set[str] = set()
    for reference in ready:
        try:
            found |= set(ray.get(reference))
        except ray.exceptions.RayError:
            continue  # it has ended
    return found, not late


def _groups(kind: str) -> list[tuple[tuple[str, str], Mapping[str, Any]]]:
    """Return the two last parts of the names of placement groups of a kind, and their rows."""
    from ray.util.placement_group import placement_group_table

    found = []
    for group in placement_group_table().values():
        parts = group["name"].split(":")
        if parts[:2] == [PREFIX, kind] and group["state"] != "REMOVED":
            first, second = parts[2:]
            found.append(((first, second), group))
    return found
