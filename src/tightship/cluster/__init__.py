"""Runs models on a cluster of Ray in the memory that their plans state.

    from tightship import cluster

    with cluster.replicas("model.onnx", shapes={"x": (1, 32)}) as group:
        results = group.run({"x": x})

replica_memory     what a replica takes, and what a node holds once; needs no Ray
nodes, allotment   nodes as plain data, read by `ray_state`; replicas by node, or a refusal
stage_advice       the fewest stages that such a refusal names
booking            options of Ray's actors, started on `booked_nodes`
worker             the memory of Ray's worker processes, measured on each node
anchor             actor of a node that keeps models' `node_file`, prepared in a `preparing_process`
weights_bookings   weights booked once for each node; `held_nodes` books them beside replicas
replica            actor that runs a model under a limit on its `process_memory`
replica_group      replicas on the nodes of a cluster
serving            deployments of Ray Serve: `served_models` are its replicas, which answer
                   `inference_calls` and have room for them (`request_memory`), whose bodies are an
                   `arriving_body` and `json_arrays`; a `keeper` (`keeper_actor` in config files)
                   keeps the weights booked
cluster_status     `node_processes` of all nodes, which are the gauges of Ray's metrics too
splitting          stages of a model within budgets: `cut_table`, `best_cuts`, `stage_program`
stage_file         a stage of a `stage_origin` as a prepared file of its own
pipelining         stages on nodes: `stage_placing`, `stage_actor`, `calls_in_flight` over a
                   `stage_transport`, along the `stage_graph`

Ray is imported when a function first needs it.
"""

from typing import TYPE_CHECKING

from tightship.late_names import late_names

if TYPE_CHECKING:
    from tightship.cluster.booking import actor_options
    from tightship.cluster.calls_in_flight import StageLostError
    from tightship.cluster.cluster_status import status
    from tightship.cluster.pipelining import Pipeline, pipeline
    from tightship.cluster.replica_group import ReplicaGroup, ReplicaLostError, replicas
    from tightship.cluster.replica_memory import ModelFile, Requirements, requirements
    from tightship.cluster.serving import Count, Models, application, deployment
    from tightship.cluster.splitting import Split, Stage, split
    from tightship.cluster.worker import WorkerMemory, worker_bytes
else:
    __getattr__ = late_names(
        __name__,
        booking="actor_options",
        calls_in_flight="StageLostError",
        pipelining="Pipeline pipeline",
        cluster_status="status",
        replica_group="ReplicaGroup ReplicaLostError replicas",
        replica_memory="ModelFile Requirements requirements",
        serving="Count Models application deployment",
        splitting="Split Stage split",
        worker="WorkerMemory worker_bytes",
    )

__all__ = [
    "Count",
    "ModelFile",
    "Models",
    "Pipeline",
    "ReplicaGroup",
    "ReplicaLostError",
    "Requirements",
    "Split",
    "Stage",
    "StageLostError",
    "WorkerMemory",
    "actor_options",
    "application",
    "deployment",
    "pipeline",
    "replicas",
    "requirements",
    "split",
    "status",
    "worker_bytes",
]
