"""Processors and memory of each NUMA node: data, read once, or given."""

from dataclasses import dataclass, replace
from pathlib import Path

SYSTEM = Path("/sys/devices/system/node")


@dataclass(frozen=True, slots=True)
class Node:
    """NUMA node; `distances` to every node, in the order of the topology."""

    number: int
    cpus: frozenset[int]
    memory_bytes: int
    distances: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """All nodes of a machine, at least one of them with memory."""

    nodes: tuple[Node, ...]

    def nearest(self, cpu: int) -> Node:
        """Return the node with memory nearest to a processor; an unknown one is the first's."""
        own = next((node for node in self.nodes if cpu in node.cpus), self.nodes[0])
        return min(
            (distance, node.number, node)
            for distance, node in zip(own.distances, self.nodes, strict=True)
            if node.memory_bytes > 0
        )[2]


def read_topology(folder: Path = SYSTEM, machine_bytes: int = 0) -> Topology:
    """Read the machine's topology; one node of `machine_bytes` if the system does not tell.

    A node's `cpulist` and `distance` are files of that name; its memory is in `meminfo`, in kB. An
    only node has at least `machine_bytes`: a node's file leaves out memory that was added later.
    """
    numbers = sorted(int(path.name[4:]) for path in folder.glob("node[0-9]*"))
    nodes = tuple(_read_node(folder / f"node{number}", number) for number in numbers)
    if len(nodes) == 1:
        only = nodes[0]
        return Topology((replace(only, memory_bytes=max(only.memory_bytes, machine_bytes)),))
    if any(node.memory_bytes > 0 for node in nodes):
        return Topology(nodes)
    return Topology((Node(0, frozenset(), machine_bytes, (10,)),))


def _read_node(folder: Path, number: int) -> Node:
    meminfo = (folder / "meminfo").read_text(encoding="ascii").split()
    memory_bytes = int(meminfo[meminfo.index("MemTotal:") + 1]) * 1024
    distances = tuple(map(int, (folder / "distance").read_text(encoding="ascii").split()))
    return Node(
        number, parse_cpus((folder / "cpulist").read_text("ascii")), memory_bytes, distances
    )


def parse_cpus(text: str) -> frozenset[int]:
    """Read the numbers of a list such as `0-3,8`."""
    ranges = [part.partition("-") for part in text.strip().split(",") if part]
    return frozenset(
        cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1)
    )
