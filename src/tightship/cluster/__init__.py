"""Runs models on a cluster of Ray in the memory that their plans state.

    from tightship import cluster

    with cluster.replicas("model.onnx", shapes={"x": (1, 32)}) as group:
        results = group.run({"x": x})

replica_memory     what a replica takes, and what a node holds once; needs no Ray
nodes, allotment   nodes as plain data, read by `ray_state`; replicas by node, or a refusal
booking            options of Ray's actors; `booked_nodes` books anchors and replicas together
worker             the memory of Ray's worker processes, measured on each node
anchor             actor that keeps a model's `node_file`, prepared in a `preparing_process`
replica            actor that runs a model under a limit on its `process_memory`
replica_group      replicas on the nodes of a cluster
splitting          stages of a model within budgets: `cut_table`, `best_cuts`, `stage_program`

Ray is imported when a function first needs it.
"""

from typing import TYPE_CHECKING

from tightship.late_names import late_names

if TYPE_CHECKING:
    from tightship.cluster.booking import actor_options
    from tightship.cluster.replica_group import ReplicaGroup, ReplicaLostError, replicas
    from tightship.cluster.replica_memory import Requirements, requirements
    from tightship.cluster.splitting import Split, Stage, split
    from tightship.cluster.worker import WorkerMemory, worker_bytes
else:
    __getattr__ = late_names(
        __name__,
        booking="actor_options",
        replica_group="ReplicaGroup ReplicaLostError replicas",
        replica_memory="Requirements requirements",
        splitting="Split Stage split",
        worker="WorkerMemory worker_bytes",
    )

__all__ = [
    "ReplicaGroup",
    "ReplicaLostError",
    "Requirements",
    "Split",
    "Stage",
    "WorkerMemory",
    "actor_options",
    "replicas",
    "requirements",
    "split",
    "worker_bytes",
]
