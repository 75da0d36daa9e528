"""Reads the nodes of the cluster that this process is connected to."""

from collections.abc import Iterator, Sequence
from typing import Any

from tightship.cluster.nodes import Node
from tightship.errors import DeadlineError, InputError, LibraryError

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


def connect(address: str | None = None) -> Any:  # noqa: ANN401
    """Return the module `ray.serve`, after connecting to the running cluster if necessary.

    Args:
        address: Address of the cluster; by default `RAY_ADDRESS`, or the one of this machine.

    Raises:
        LibraryError: Ray Serve is not installed.
        InputError: No cluster is running.
    """
    try:
        import ray
        from ray import serve
    except ImportError:
        raise LibraryError("This needs Ray with Serve: `pip install 'tightship[ray]'`.") from None
    if not ray.is_initialized():
        try:
            ray.init(address=address or "auto", log_to_driver=False, logging_level="error")
        except ConnectionError as error:
            raise InputError(
                f"No Ray cluster is running: {error} Start one with `ray start --head`, or call "
                "`ray.init()` first."
            ) from None
    return serve


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


def booked_bytes() -> int:
    """Return the memory that the actor in this process has booked; 0 in other processes."""
    import ray

    context = ray.get_runtime_context()
    if context.get_actor_id() is None:
        return 0
    return int(context.get_assigned_resources().get("memory", 0))


def results_of(references: Sequence[Any], timeout_s: float | None = None) -> list[Any]:
    """Wait for results; an error of an actor is raised as it was raised there.

    Raises:
        DeadlineError: The timeout passed.
        Exception: Any that an actor raised, or the end of one.
    """
    import ray

    try:
        found: list[Any] = ray.get(list(references), timeout=timeout_s)
    except ray.exceptions.GetTimeoutError:
        raise DeadlineError(f"No replica answered within {timeout_s} s.") from None
    except ray.exceptions.RayTaskError as error:
        cause = getattr(error, "cause", None)
        raise cause if isinstance(cause, Exception) else error from None
    return found
