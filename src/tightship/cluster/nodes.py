"""Nodes of a cluster as plain data: what each has, and what is booked on it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """Machine of a cluster.

    Attributes:
        node_id: Id, or the name of a type of node that an autoscaler can start.
        memory_bytes: Memory that may be booked in all.
        free_bytes: Part of it that nothing has booked.
        cpus: Processors that may be booked in all.
        free_cpus: Part of them that nothing has booked.
        count: Number of such nodes; above 1 for a type of node.
        is_running: Whether it is there; false for a type of node.
    """

    node_id: str
    memory_bytes: int
    free_bytes: int
    cpus: float
    free_cpus: float
    count: int = 1
    is_running: bool = True
