"""Graph with the nodes that write and read each of its values, as passes look them up."""

from collections.abc import Mapping
from dataclasses import dataclass

from tightship.engine.lower.passes.rewrite import readers_of, sole_reader
from tightship.graph import Graph, Node

DEQUANTIZING = frozenset({"Dequantize", "DequantizeLinear"})


@dataclass(frozen=True, slots=True)
class Walk:
    """Graph, with the number of readers of each name, its last reader and its writer."""

    graph: Graph
    counts: Mapping[str, int]
    readers: Mapping[str, Node]
    makers: Mapping[str, Node]
    """Node that writes each name."""

    @classmethod
    def over(cls, graph: Graph) -> "Walk":
        """Walk over the nodes of a graph."""
        makers = {name: node for node in graph.nodes for name in node.writes}
        return cls(graph, graph.uses(), readers_of(graph), makers)

    def sole_reader(self, name: str) -> Node | None:
        """Return the node that alone reads a value, None if several or none do."""
        return sole_reader(self.counts, self.readers, name)

    def is_of_integers(self, node: Node) -> bool:
        """Whether a node's first operand is integers that a kernel may read as they are."""
        maker = self.makers.get(node.inputs[0])
        return maker is not None and maker.operator in DEQUANTIZING
