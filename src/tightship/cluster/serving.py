"""Deploys models with Ray Serve in the memory that their plans state."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

from tightship.cluster.allotment import Demand, allot, replicas_on
from tightship.cluster.booking import ANCHOR_BYTES
from tightship.cluster.held_nodes import CALLS, anchor_bytes, held_bytes
from tightship.cluster.node_file import source_of
from tightship.cluster.nodes import Node
from tightship.cluster.ray_state import alive_nodes, connect, startable_nodes
from tightship.cluster.replica_memory import ModelFile, Requirements, Shapes, requirements
from tightship.cluster.request_memory import BodyLimits, together, with_requests
from tightship.cluster.stage_advice import stages_of
from tightship.cluster.weights_bookings import KEEPER, Holding
from tightship.cluster.worker import ServeProbe, measured_workers, worker_bytes
from tightship.errors import InputError
from tightship.quantity import parse_bytes

ONGOING = 2
"""Requests that a replica has at once: one runs while the next one arrives."""
OWN_OPTIONS = {
    "autoscaling_config",
    "deployment_actors",
    "max_replicas_per_node",
    "num_replicas",
    "placement_group_bundles",
    "placement_group_strategy",
    "ray_actor_options",
}
"""Options of Serve that follow from the memory, and cannot be given."""
Models = ModelFile | Mapping[str, ModelFile]
"""One model, or several by the names that requests use."""
Count = int | Literal["auto"]
"""A number of replicas; `"auto"` is as many as the cluster has memory for."""


def deployment(
    model: Models,
    *,
    replicas: Count = "auto",
    max_memory: str | int | None = None,
    shapes: Shapes | None = None,
    threads: int | None = None,
    autoscaling: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:  # noqa: ANN401  an application of Ray Serve
    """Make an application of Ray Serve whose replicas book what they take, and are held to it.

    It answers the Open Inference Protocol over HTTP. A handle has `run(inputs)` for NumPy arrays,
    and `apply(function, ...)`. The weights are on each node once, in an anchor that all
    deployments, groups and jobs of the node share. If this process is not connected to a cluster,
    it connects to the running one, so that `serve build` and `serve run` can import a module that
    calls this.

    Args:
        model: Path of an ONNX file or prepared model; or several by name, of which each replica
            runs one at a time in one arena, multiplexed by Serve.
        replicas: Number of replicas; `"auto"` for as many as the running nodes hold.
        max_memory: Memory that each replica books in all, such as `"512MiB"`; by default what is
            planned. More of it leaves room for text in JSON and for functions of `apply`.
        shapes: Shapes for inputs whose dimensions are symbolic: the largest that are accepted.
        threads: Threads of each kernel; by default one, or as the model was prepared for.
        autoscaling: Serve's `autoscaling_config`, of which `max_replicas` is by default what
            `replicas` says.
        options: Further options of `ray.serve.deployment`, such as `name`,
            `graceful_shutdown_timeout_s`, and `max_ongoing_requests`, whose bodies a replica has
            room for (2 by default).

    Raises:
        CapacityError: The nodes do not hold the replicas, or `max_memory` does not hold one.
        FormatError, GraphError: The errors of `requirements`.
        InputError: An error of `requirements`; an option that follows from the memory is given; or
            no cluster is running.
        LibraryError: Ray Serve is not installed.
    """
    serve = connect()
    given = _checked(options)
    ongoing = given.setdefault("max_ongoing_requests", ONGOING)
    count = _count(replicas, autoscaling)
    paths = _named(model)
    needs = {
        name: requirements(path, shapes=shapes, threads=threads) for name, path in paths.items()
    }
    holdings = [
        Holding(source_of(path, shapes, needs[name].threads), needs[name].weights_bytes)
        for name, path in paths.items()
    ]
    nodes, held = [*alive_nodes(), *startable_nodes()], held_bytes(holdings)
    stages = None
    if len(paths) == 1:
        stages = stages_of(next(iter(paths.values())), shapes, holdings[0].source.threads)
    first = Demand(together(list(needs.values())), count=count, held=held, stages=stages)
    allot(first, nodes)  # refuses at once what no worker could change
    demand, limits = _demand(list(needs.values()), nodes, ongoing, max_memory, count)
    demand = replace(demand, held=held, stages=stages)
    keeper = keeper_node(demand, nodes)
    allotted = allot(demand, [_without_keeper(demand, each, keeper) for each in nodes])
    from tightship.cluster.served_models import MultiplexedModels, Served, ServedModels

    anchors = anchor_bytes(demand, [each for each in nodes if each.node_id in allotted])
    made = serve.deployment(
        **{"name": "tightship", **given},
        **_scaled(sum(allotted.values()), autoscaling),
        ray_actor_options=_options(demand, nodes, allotted),
        deployment_actors=[_keeper(demand, keeper, holdings, anchors)],
    )(ServedModels if len(paths) == 1 else MultiplexedModels)
    served = Served(
        needs, tuple(holdings), max(anchors.values()), demand.requirements, limits
    )  # fmt: skip
    return made.bind(served)


def _demand(
    needs: Sequence[Requirements],
    nodes: Sequence[Node],
    ongoing: int,
    max_memory: str | int | None,
    count: int | None,
) -> tuple[Demand, BodyLimits]:
    """Return what the replicas take together with their requests, as measured on these nodes."""
    running = [node.node_id for node in nodes if node.is_running]
    serving = measured_workers(ServeProbe, running).on(None)
    limit = None if max_memory is None else parse_bytes(max_memory, "max_memory")
    whole, limits = with_requests(together(needs), ongoing, serving, limit)
    workers = worker_bytes(running).by_node
    keeper = max(workers.values()) + ANCHOR_BYTES
    return Demand(whole, workers, count, serving_bytes=serving, keeper_bytes=keeper), limits


def application(arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Make the application of a config file: `import_path: tightship.cluster:application`.

    Args:
        arguments: Arguments of `deployment`, with `model` or `models` (paths by name).

    Raises:
        InputError: `model` is missing, or an argument is unknown.
        TightshipError: The errors of `deployment`.
    """
    given = dict(arguments)
    model = given.pop("models", None) or given.pop("model", None)
    known = set(deployment.__annotations__) - {"model", "return"}
    unknown = sorted(set(given) - known)
    if model is None or unknown:
        what = "`model` is missing" if model is None else f"Unknown argument `{unknown[0]}`"
        raise InputError(f"{what}; `args` are `model`, and {', '.join(sorted(known))}.")
    return deployment(model, **given)


def _checked(options: Mapping[str, Any] | None) -> dict[str, Any]:
    given = dict(options or {})
    refused = sorted(OWN_OPTIONS & given.keys())
    if refused:
        raise InputError(
            f"`options` has `{refused[0]}`, which follows from the memory; give `replicas`, "
            "`autoscaling` or `max_memory` instead."
        )
    return given


def _named(model: Models) -> dict[str, str]:
    if isinstance(model, Mapping):
        if not model:
            raise InputError("`model` names no models; give at least one.")
        return {name: fspath(path) for name, path in model.items()}
    if not isinstance(model, str | PathLike):
        raise InputError(
            f"A model of a cluster is a path that its nodes can read, not {type(model).__name__}."
        )
    return {Path(model).stem: fspath(model)}


def _count(replicas: Count, autoscaling: Mapping[str, Any] | None) -> int | None:
    """Return the most replicas that are wanted; None for as many as fit."""
    if isinstance(replicas, str) and replicas != "auto":
        raise InputError(f"`replicas` is `{replicas}`; it must be a number, or `auto`.")
    most = (autoscaling or {}).get("max_replicas", replicas)
    return None if most == "auto" else int(most)


def _scaled(count: int, autoscaling: Mapping[str, Any] | None) -> dict[str, Any]:
    if autoscaling is None:
        return {"num_replicas": count}
    return {"autoscaling_config": {**autoscaling, "max_replicas": count}}


def _options(demand: Demand, nodes: Sequence[Node], allotted: Mapping[str, int]) -> dict[str, Any]:
    """Return the options of a replica, kept off nodes that hold none together with an anchor."""
    full = [node.node_id for node in nodes if node.is_running and node.node_id not in allotted]
    elsewhere = {"label_selector": {"ray.io/node-id": f"!in({','.join(full)})"}} if full else {}
    return {
        "num_cpus": demand.requirements.threads,
        "memory": demand.replica_bytes(nodes[0]),
        **elsewhere,
    }


def keeper_node(demand: Demand, nodes: Sequence[Node]) -> Node | None:
    """Return the running node on which a keeper takes the place of fewest replicas, if any."""
    having = [each for each in nodes if each.is_running and each.free_bytes >= demand.keeper_bytes]

    def cost(node: Node) -> tuple[int, int]:
        beside = _without_keeper(demand, node, node)
        return replicas_on(demand, node) - replicas_on(demand, beside), -node.free_bytes

    return min(having, key=cost, default=None)


def _without_keeper(demand: Demand, node: Node, keeper: Node | None) -> Node:
    if keeper is None or node.node_id != keeper.node_id:
        return node
    return replace(node, free_bytes=node.free_bytes - demand.keeper_bytes)


def _keeper(
    demand: Demand,
    node: Node | None,
    holdings: Sequence[Holding],
    anchors: Mapping[str, int],
) -> Any:  # noqa: ANN401
    from ray.serve.config import DeploymentActorConfig

    from tightship.cluster.keeper_actor import KeeperActor, plain_holding

    placed: dict[str, Any] = {}
    if node is not None:
        # Serve compares these options for equality, which objects of Ray's strategies lack.
        placed["label_selector"] = {"ray.io/node-id": node.node_id}
        placed["fallback_strategy"] = [{"label_selector": {}}]
    return DeploymentActorConfig(
        name=KEEPER,
        actor_class=KeeperActor,
        init_args=([plain_holding(each) for each in holdings], anchors, demand.requirements.model),
        actor_options={
            "memory": demand.keeper_bytes,
            "num_cpus": 0,
            "max_concurrency": CALLS,
            **placed,
        },
    )
