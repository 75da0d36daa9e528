"""Actor of a deployment of Ray Serve, which keeps what its nodes hold once until Serve ends it.

Serve starts it before the replicas, starts another if it ends, and ends it with the deployment. The
anchors ask it what the deployment needs; so they go on while a deployment has no replica on a node.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tightship.cluster.held_nodes import anchor_on, hold_on
from tightship.cluster.node_processes import Process
from tightship.cluster.ray_state import alive_nodes, booked_bytes
from tightship.cluster.weights_bookings import Holding
from tightship.errors import CapacityError

PLACED_S = 30.0
"""Seconds that anchors have until they are placed, before the replicas may take their memory."""


class Keeper:
    """Process that says what a deployment needs on its nodes."""

    def __init__(self, holdings: Sequence[Holding], anchors: Mapping[str, int], model: str) -> None:
        """Start an anchor on each node that has none, and book the weights that it has not booked.

        Nodes that lack the memory are left out; their replicas ask again.

        Args:
            holdings: Weights of the models.
            anchors: Memory of an anchor by node.
            model: Names of the models in reports.
        """
        self._keys = [each.source.key for each in holdings]
        alive = {node.node_id for node in alive_nodes()}
        self._nodes = alive & set(anchors)
        self._process = Process("keeper", os.getpid(), model, booked_bytes())

        def hold(node: str) -> None:
            with suppress(CapacityError):
                hold_on({node: anchors[node]}, holdings, PLACED_S)

        with ThreadPoolExecutor(max(1, len(self._nodes))) as pool:
            list(pool.map(hold, self._nodes))
        self._register(anchors)

    def keys(self, node: str) -> list[str]:
        """Return the keys of the weights that the deployment needs on a node."""
        return self._keys if node in self._nodes else []

    def _register(self, anchors: Mapping[str, int]) -> None:
        import ray

        here = ray.get_runtime_context().get_node_id()
        if here in self._nodes:
            anchor_on(here, anchors[here]).register.remote(self._process)
