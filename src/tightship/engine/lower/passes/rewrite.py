"""Rebuilds a graph from changed nodes, without unused ones; helpers of all passes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import is_

import numpy as np

from tightship.graph import AttributeValue, Constant, DType, Graph, Inline, Node, Shape, Value
from tightship.graph.operators import row_of
from tightship.graph.symbolic import SymbolicConstant

OPSET = 13
"""Version of the operators that a `GraphWriter` writes."""


def rebuilt(
    graph: Graph,
    nodes: Iterable[Node],
    *,
    constants: Mapping[str, Constant] | None = None,
    values: Mapping[str, Value] | None = None,
) -> Graph:
    """Replace the nodes of `graph`, and add constants and types of new values.

    Nodes and constants that no output depends on are dropped.
    """
    added = {name: Value(name, c.dtype, c.shape) for name, c in (constants or {}).items()}
    all_constants = {**graph.constants, **(constants or {})}
    needed = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(list(nodes)):
        if needed.intersection(node.writes):
            kept.append(_trimmed(node, needed))
            needed.update(node.reads)
    kept.reverse()
    found = {name: c for name, c in all_constants.items() if name in needed}
    is_same = len(kept) == len(graph.nodes) and all(map(is_, kept, graph.nodes))
    if is_same and not constants and not values and len(found) == len(graph.constants):
        return graph
    return replace(
        graph,
        nodes=tuple(kept),
        constants=found,
        values={**graph.values, **added, **(values or {})},
    )


@dataclass(slots=True)
class GraphWriter:
    """Nodes that replace those of a graph, in order, with new constants and values."""

    graph: Graph
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)

    def value(self, name: str) -> Value:
        """Return the type of a value, which may be new."""
        return self.values.get(name) or self.graph.value(name)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the lengths of a value whose shape is known."""
        return self.value(name).static_shape

    def declare(self, name: str, shape: Shape | None, dtype: DType | None = DType.FLOAT32) -> str:
        """Give a new value its type; return its name."""
        self.values[name] = Value(name, dtype, shape)
        return name

    def number(self, name: str, number: float, dtype: DType = DType.FLOAT32) -> str:
        """Add a constant of one number; return its name."""
        self.constants[name] = Inline(np.array(number, dtype.numpy))
        return name

    def integers(self, name: str, numbers: tuple[int, ...]) -> str:
        """Add a constant row of int64; return its name."""
        self.constants[name] = Inline(np.array(numbers, np.int64))
        return name

    def add(
        self, operator: str, inputs: tuple[str, ...], output: str,
        attributes: Mapping[str, AttributeValue] | None = None, *, name: str = "", domain: str = "",
    ) -> str:  # fmt: skip
        """Append a node, by default with the name of its output; return the output."""
        given = attributes or {}
        node = Node(name or output, operator, inputs, (output,), given, domain, OPSET)
        self.nodes.append(node)
        return output

    def reshape(self, source: str, shape: tuple[int, ...], output: str, *, name: str = "") -> str:
        """Append a Reshape to lengths that may follow those of an input; return the output."""
        sizes = f"{output}.shape"
        self.constants[sizes] = SymbolicConstant(DType.INT64, np.array(shape, object))
        return self.add("Reshape", (source, sizes), output, name=name)

    def written(self) -> Graph:
        """Return the graph of the nodes; the same one if they are those that it had."""
        if self.nodes == list(self.graph.nodes):
            return self.graph
        return rebuilt(self.graph, self.nodes, constants=self.constants, values=self.values)


def _trimmed(node: Node, needed: set[str]) -> Node:
    """Drop optional outputs that have no reader."""
    if len(node.outputs) < 2 or not row_of(node).trims:
        return node
    rest = [name if name in needed else "" for name in node.outputs[1:]]
    while rest and not rest[-1]:
        rest.pop()
    return replace(node, outputs=(node.outputs[0], *rest))


def sole_reader(counts: Mapping[str, int], readers: Mapping[str, Node], name: str) -> Node | None:
    """Return the only node that reads `name`; None if others do, or it is a graph output.

    `counts` are the graph's `uses`, which include graph outputs.
    """
    return readers.get(name) if counts.get(name, 0) == 1 else None


def readers_of(graph: Graph) -> dict[str, Node]:
    """Map each name to the last node that reads it."""
    return {name: node for node in graph.nodes for name in node.reads}
