"""Tells a refusal into how few stages a model can be cut for nodes that cannot hold it whole."""

from collections.abc import Sequence

from tightship.cluster.allotment import Stages
from tightship.cluster.nodes import Node
from tightship.cluster.replica_memory import ModelFile, Shapes
from tightship.engine.stored.container import holds_prepared

STEPS_MAX = 150
"""Most steps of a model for which a refusal, which is immediate, looks for stages."""
NODES_MAX = 5
"""Most nodes that it looks at, the largest."""


def stages_of(model: ModelFile, shapes: Shapes | None, threads: int) -> Stages:
    """Return a function of nodes and the bytes of an idle worker: the fewest stages that fit them.

    It returns None if no stages within the memory of the largest nodes exist, or if the model is
    prepared or has more steps than `STEPS_MAX`. Memory that others have booked counts as free.
    """

    def fewest(nodes: Sequence[Node], worker_bytes: int) -> int | None:
        if holds_prepared(model):
            return None
        from tightship.cluster.splitting import Splitter
        from tightship.cluster.stage_actor import CHANNEL_BYTES
        from tightship.cluster.stage_origin import Origin, compiled

        origin = Origin.of(model, shapes, threads)
        whole = compiled(origin)
        if len(whole.placement.lowered.steps) > STEPS_MAX:
            return None
        found = Splitter(whole, origin)
        own = worker_bytes + CHANNEL_BYTES
        budgets = [each.memory_bytes - own for each in nodes
                   for _ in range(min(each.count, NODES_MAX)) if each.cpus >= threads]  # fmt: skip
        largest = sorted((size for size in budgets if size > 0), reverse=True)[:NODES_MAX]
        counts = range(1, len(largest) + 1)
        return next((each for each in counts if found.cuts(largest[:each]) is not None), None)

    return fewest
