"""Reads the nodes of the cluster that this process is connected to."""

from collections.abc import Iterator
from typing import Any

from tightship.cluster.nodes import Node
from tightship.errors import InputError, LibraryError

UNBOUNDED = 1000
"""Number of nodes that stands for a type of node without a maximum."""


def ray_module() -> Any:  # noqa: ANN401  Ray has no types that a check without it could use
    """Return the module `ray`, connected to a cluster.

    Raises:
        LibraryError: Ray is not installed.
        InputError: This process is not connected to a cluster.
    """
    try:
        import ray
    except ImportError:
        raise LibraryError(
            "`tightship.cluster` needs Ray: `pip install 'tightship[ray]'`."
        ) from None
    if not ray.is_initialized():
        raise InputError("This process is not connected to a Ray cluster; call `ray.init()` first.")
    return ray


def alive_nodes() -> list[Node]:
    """Return the nodes that are alive, with what is booked on each.

    Raises:
        InputError, LibraryError: As `ray_module`.
    """
    ray_module()
    from ray._private.state import available_resources_per_node, total_resources_per_node

    free, total = available_resources_per_node(), total_resources_per_node()
    return [
        Node(
            node,
            int(has.get("memory", 0)),
            int(free.get(node, {}).get("memory", 0)),
            float(has.get("CPU", 0)),
            float(free.get(node, {}).get("CPU", 0)),
        )
        for node, has in sorted(total.items())
    ]


def startable_nodes() -> list[Node]:
    """Return the types of node that the cluster's autoscaler can still start; none without one."""
    ray_module()
    from ray._private.state import state

    config = state.get_cluster_config()
    return [] if config is None else list(_types(config))


def _types(config: Any) -> Iterator[Node]:  # noqa: ANN401
    for group in config.node_group_configs:
        count = UNBOUNDED if group.max_count < 0 else group.max_count
        memory, cpus = group.resources.get("memory", 0), float(group.resources.get("CPU", 0))
        if count and memory:
            yield Node(group.name, memory, memory, cpus, cpus, count, is_running=False)


def on_node(node_id: str) -> dict[str, Any]:
    """Return options that place an actor on a node and nowhere else."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node_id, soft=False)}
