"""Fuses QuantizeLinear into the integer kernel before it."""

from collections.abc import Mapping

from tightship.engine.lower.passes.dequantized import quantization
from tightship.engine.lower.passes.fuse import Candidate, fuse
from tightship.engine.lower.passes.rewrite import readers_of, sole_reader
from tightship.graph import Graph, Node

PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})
HEADS = PRODUCTS | {"Add"}


def fuse_quantize(graph: Graph) -> Graph:
    """Fuse QuantizeLinear into the product or addition of dequantized operands before it."""
    makers = {
        node.outputs[0]
        for node in graph.nodes
        if node.operator == "DequantizeLinear" and _is_narrow(graph, node)
    }

    counts, readers = graph.uses(), readers_of(graph)

    def accepts(candidate: Candidate) -> bool:
        head, follower = candidate.head, candidate.follower
        if head.operator not in HEADS or head.domain or head.inputs[0] not in makers:
            return False
        if follower.domain or follower.inputs[0] != candidate.name:
            return False
        if head.operator == "Add" and follower.operator == "Relu" and not head.fused:
            return candidate.keeps_shape and _is_quantized_alone(graph, counts, readers, follower)
        return follower.operator == "QuantizeLinear" and _is_narrow(graph, follower)

    return fuse(graph, accepts)


def _is_quantized_alone(
    graph: Graph, counts: Mapping[str, int], readers: Mapping[str, Node], node: Node
) -> bool:
    reader = sole_reader(counts, readers, node.outputs[0])
    return reader is not None and reader.operator == "QuantizeLinear" and _is_narrow(graph, reader)


def _is_narrow(graph: Graph, node: Node) -> bool:
    name = node.inputs[0] if node.operator == "DequantizeLinear" else node.outputs[0]
    return quantization(node, graph.value(name).dtype, graph.constants) is not None
