"""Moves DequantizeLinear behind operators that only move elements."""

from dataclasses import dataclass, field, replace

from tightship.engine.lower.passes.dequantized import Quantization, quantization
from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import DType, Graph, Node, Value

MOVING = frozenset(
    {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose", "Slice", "Gather",
     "MaxPool", "DepthToSpace", "SpaceToDepth", "Expand", "Tile"}
)  # fmt: skip
"""Operators whose output consists of elements of their first input."""
INTEGER_MAXPOOL = 12
"""First opset in which MaxPool accepts 8-bit integers."""


def sink_dequantize(graph: Graph) -> Graph:
    """Move DequantizeLinear behind operators that move, and drop it before its inverse."""
    walk = _Walk(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        maker = walk.makers.get(node.inputs[0]) if node.inputs and not node.domain else None
        nodes.extend(walk.rewritten(node, *maker) if maker is not None else [node])
        walk.note(nodes[-1])
    return rebuilt(graph, nodes, values=walk.values)


@dataclass(slots=True)
class _Walk:
    graph: Graph
    values: dict[str, Value] = field(default_factory=dict)
    makers: dict[str, tuple[Node, Quantization]] = field(default_factory=dict)
    """DequantizeLinear of 8 bits with one scale, by output."""

    def dtype(self, name: str) -> DType | None:
        added = self.values.get(name)
        return added.dtype if added else self.graph.value(name).dtype

    def note(self, node: Node) -> None:
        if node.operator == "DequantizeLinear" and not node.domain:
            found = quantization(node, self.dtype(node.inputs[0]), self.graph.constants)
            if found is not None:
                self.makers[node.outputs[0]] = node, found

    def rewritten(self, node: Node, maker: Node, before: Quantization) -> list[Node]:
        if node.operator == "QuantizeLinear":
            after = quantization(node, self.dtype(node.outputs[0]), self.graph.constants)
            if after is not None and replace(after, integers=before.integers) == before:
                same = maker.inputs[:1]
                return [replace(node, operator="Identity", inputs=same, attributes={})]
        too_old = node.operator == "MaxPool" and node.version < INTEGER_MAXPOOL
        if node.operator not in MOVING or len(node.writes) != 1 or node.fused or too_old:
            return [node]
        name = f"{node.outputs[0]}.integers"
        self.values[name] = Value(name, before.dtype, self.graph.value(node.outputs[0]).shape)
        return [
            replace(node, inputs=(maker.inputs[0], *node.inputs[1:]), outputs=(name,)),
            replace(maker, name=f"{node.name}.dequantize", inputs=(name, *maker.inputs[1:]),
                    outputs=node.outputs),
        ]  # fmt: skip
