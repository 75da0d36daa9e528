"""Runs models on a cluster of Ray in the memory that their plans state.

    from tightship import cluster

    needs = cluster.requirements("model.onnx", shapes={"x": (1, 32)})
    replica = ray.remote(MyActor).options(**cluster.actor_options(needs)).remote()

replica_memory what a replica takes, and what a node holds once; needs no Ray
booking        options of Ray's actors
worker         the memory of Ray's worker processes, measured on each node
nodes          nodes as plain data, read by `ray_state`
replica        actor that runs a model under a limit on its memory

Ray is imported when a function first needs it.
"""

from typing import TYPE_CHECKING

from tightship.late_names import late_names

if TYPE_CHECKING:
    from tightship.cluster.booking import actor_options
    from tightship.cluster.replica_memory import Requirements, requirements
    from tightship.cluster.worker import WorkerMemory, worker_bytes
else:
    __getattr__ = late_names(
        __name__,
        booking="actor_options",
        replica_memory="Requirements requirements",
        worker="WorkerMemory worker_bytes",
    )

__all__ = ["Requirements", "WorkerMemory", "actor_options", "requirements", "worker_bytes"]
