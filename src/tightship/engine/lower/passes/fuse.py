"""Fuses a node into the kernel before it, where a pass accepts it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tightship.engine.lower.passes.rewrite import readers_of, rebuilt, sole_reader
from tightship.graph import DType, Graph, Node

HEADS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators whose kernels can apply further operations before they write."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Node `follower` that alone reads `name`, an output of `head`, and may be fused into it."""

    graph: Graph
    head: Node
    follower: Node
    name: str
    born: Mapping[str, int]
    """Index of the node that writes each name; inputs and constants are absent."""

    def is_float32(self, name: str) -> bool:
        """Whether a value is a float32 tensor of known shape."""
        value = self.graph.value(name)
        return value.is_static and value.dtype is DType.FLOAT32

    @property
    def keeps_shape(self) -> bool:
        """Whether the follower's output has the type and shape of the head's."""
        before, after = self.graph.value(self.name), self.graph.value(self.follower.outputs[0])
        return self.is_float32(self.name) and (before.dtype, before.shape) == (
            after.dtype,
            after.shape,
        )

    def exists_before_head(self, name: str) -> bool:
        """Whether a value exists when the head runs."""
        return self.born.get(name, -1) < self.born[self.head.outputs[0]]


def fuse(graph: Graph, accepts: Callable[[Candidate], bool]) -> Graph:
    """Fuse each node that `accepts` approves into the only producer that it can join."""
    counts, readers = graph.uses(), readers_of(graph)
    born = {n: i for i, node in enumerate(graph.nodes) for n in (*node.outputs, *node.writes)}
    absorbed: set[str] = set()
    nodes: list[Node] = []
    for original in graph.nodes:
        if original.name in absorbed:
            continue
        node = original
        while len(node.writes) == 1:
            name = node.writes[0]
            follower = sole_reader(counts, readers, name)
            if (
                follower is None
                or len(follower.outputs) != 1
                or follower.name in absorbed
                or follower.fused
                or not accepts(Candidate(graph, node, follower, name, born))
            ):
                break
            absorbed.add(follower.name)
            node = replace(node, fused=(*node.fused, follower))
        nodes.append(node)
    return rebuilt(graph, nodes)
