"""Rewrites means and maxima over whole images to global pooling, which keeps image layouts."""

from dataclasses import replace

from tightship.engine.lower.passes.recognize_normalization import axes_of
from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import DType, Graph, Node, Value

POOLINGS = {"ReduceMean": "GlobalAveragePool", "ReduceMax": "GlobalMaxPool"}
RANKS = (3, 4, 5)


def pool_means(graph: Graph) -> Graph:
    """Replace ReduceMean and ReduceMax over all axes from the third on by a global pooling."""
    nodes: list[Node] = []
    values: dict[str, Value] = {}
    for node in graph.nodes:
        nodes.extend(_pooled(graph, node, values) or [node])
    return rebuilt(graph, nodes, values=values)


def _pooled(graph: Graph, node: Node, values: dict[str, Value]) -> list[Node] | None:
    source = graph.value(node.inputs[0]) if node.inputs else Value("")
    if node.operator not in POOLINGS or node.domain or source.dtype is not DType.FLOAT32:
        return None
    if not source.is_static or len(source.static_shape) not in RANKS:
        return None
    shape = source.static_shape
    axes = axes_of(graph, node)
    if axes is None or sorted(axis % len(shape) for axis in axes) != list(range(2, len(shape))):
        return None
    pooling = replace(
        node, operator=POOLINGS[node.operator], version=1, inputs=node.inputs[:1], attributes={}
    )
    if node.attributes.get("keepdims", 1) == 1:
        return [pooling]
    kept = f"{node.outputs[0]}.kept"
    values[kept] = Value(kept, source.dtype, (*shape[:2], *[1] * (len(shape) - 2)))
    flat = Node(f"{node.name}.flat", "Flatten", (kept,), node.outputs, {"axis": 1}, version=13)
    return [replace(pooling, outputs=(kept,)), flat]
