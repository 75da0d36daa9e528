"""Rewrites means and maxima over whole images to global pooling, which keeps image layouts."""

from dataclasses import replace

from tightship.engine.lower.passes.recognize_normalization import axes_of
from tightship.engine.lower.passes.rewrite import GraphWriter
from tightship.graph import DType, Graph, Node, Value

POOLINGS = {"ReduceMean": "GlobalAveragePool", "ReduceMax": "GlobalMaxPool"}
RANKS = (3, 4, 5)


def pool_means(graph: Graph) -> Graph:
    """Replace ReduceMean and ReduceMax over all axes from the third on by a global pooling."""
    writer = GraphWriter(graph)
    for node in graph.nodes:
        pooling = _pooling(graph, node)
        if pooling is None or node.attributes.get("keepdims", 1) == 1:
            writer.nodes.append(pooling or node)
            continue
        batch, channels, *image = writer.shape(node.inputs[0])
        kept = writer.declare(f"{node.outputs[0]}.kept", (batch, channels, *[1] * len(image)))
        writer.nodes.append(replace(pooling, outputs=(kept,)))
        writer.add("Flatten", (kept,), node.outputs[0], {"axis": 1}, name=f"{node.name}.flat")
    return writer.written()


def _pooling(graph: Graph, node: Node) -> Node | None:
    source = graph.value(node.inputs[0]) if node.inputs else Value("")
    if node.operator not in POOLINGS or node.domain or source.dtype is not DType.FLOAT32:
        return None
    if not source.is_static or len(source.static_shape) not in RANKS:
        return None
    shape = source.static_shape
    axes = axes_of(graph, node)
    if axes is None or sorted(axis % len(shape) for axis in axes) != list(range(2, len(shape))):
        return None
    operator = POOLINGS[node.operator]
    return replace(node, operator=operator, version=1, inputs=node.inputs[:1], attributes={})
